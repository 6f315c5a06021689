import io
import logging
import subprocess
import sys
import time

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


@pytest.mark.parametrize(
    ("total", "unit", "done", "lines"),
    [
        (
            600,
            "images",
            120,
            ["120 of 600 images, 2.0 images/s, 0:04:00 left", "300 of 600 images, 2.5 images/s, 0:02:00 left"],
        ),
        (None, "rows", 6_000, ["6,000 rows, 100 rows/s", "15,000 rows, 125 rows/s"]),
        (
            3 * 10**9,
            "B",
            12 * 10**8,
            ["1,200 of 3,000 MB, 20 MB/s, 0:01:30 left", "3,000 of 3,000 MB, 25 MB/s, 0:00:00 left"],
        ),
    ],
)
def test_a_line_a_minute_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    total: int | None,
    unit: str,
    done: int,
    lines: list[str],
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    caplog.set_level(logging.INFO, "setsup")
    with progress(total, "work", unit) as advance:
        for seconds, part in ((59.0, done // 2), (1.0, done - done // 2), (30.0, done), (30.0, done // 2)):
            clock[0] += seconds
            advance(part)
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert said == [("INFO", f"work: {line}") for line in lines]


def test_what_else_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock, asked = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def note() -> str:
        asked.append(clock[0])
        return "loss 2.5"

    def work() -> None:
        with progress(10, "work", "steps", note) as advance:
            for _ in range(5):
                clock[0] += 20
                advance()

    work()
    assert asked == [], "nobody listens"
    caplog.set_level(logging.INFO, "setsup")
    work()
    assert [record.getMessage() for record in caplog.records] == [
        "work: 3 of 10 steps, 0.1 steps/s, loss 2.5, 0:02:20 left"
    ]
    assert asked == [160]
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    work()
    assert "loss 2.5" in terminal.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_level_above_info_silences_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, stream: type[io.StringIO]
) -> None:
    clock, shown = [0.0], stream()
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", shown)
    caplog.set_level(logging.WARNING, "setsup")
    with progress(10, "work") as advance:
        clock[0] += 100
        advance(5)
    assert (shown.getvalue(), caplog.records) == ("", [])


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


def test_a_part_of_the_work_has_no_bar_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress(10, "the whole") as advance:
        for _ in range(2):
            with progress(5, "a part") as inner:
                inner(5)
            advance(5)
    with progress(5, "what follows") as advance:
        advance(5)
    shown = terminal.getvalue()
    assert ("the whole" in shown, "a part" in shown, "what follows" in shown) == (True, False, True)


def test_an_error_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyboardInterrupt), progress(1, "work"):
        raise KeyboardInterrupt


def test_rich_is_loaded_only_when_something_is_shown() -> None:
    code = "import sys, setsup.progress, setsup.files as f\nwith setsup.progress.progress(1, 'x') as a: a()\n"
    code += "f.manifest_names()\nprint(sorted({'rich', 'requests', 'numpy', 'torch', 'filelock'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
