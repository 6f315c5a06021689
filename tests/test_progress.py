import io
import subprocess
import sys

import pytest

from setsup.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(10, "work") as advance:
        advance()
        advance(9)
    assert capsys.readouterr() == ("", "")


def test_no_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress(10, "work") as advance:
        advance(10)


@pytest.mark.parametrize(
    ("unit", "total", "shown"), [("B", 3_000_000, "3.0/3.0 MB"), ("images", 20, "20/20"), ("images", None, "20/?")]
)
def test_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, unit: str, total: int | None, shown: str) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    done = total or 20
    with progress(total, "reading [b]x[/b].gz", unit) as advance:
        advance(done // 2)
        advance()
        advance(-1)
        advance(done - done // 2)
    assert "reading [b]x[/b].gz" in terminal.getvalue()  # a name is no style
    assert shown in terminal.getvalue()


def test_an_error_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyboardInterrupt), progress(1, "work"):
        raise KeyboardInterrupt


def test_rich_is_loaded_only_when_something_is_shown() -> None:
    code = "import sys, setsup.progress, setsup.files as f\nwith setsup.progress.progress(1, 'x') as a: a()\n"
    code += "f.manifest_names()\nprint(sorted({'rich', 'requests', 'numpy', 'torch', 'filelock'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
