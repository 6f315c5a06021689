"""What ``setsup doctor`` says of renderers and optional libraries; the rest of the verb is in test_verbs.py."""

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from setsup.errors import DataError
from setsup.optional import LIBRARIES
from setsup.scenes import renderer
from setsup.scenes.renderers import choose
from setsup_renderers.embree import EmbreeRenderer
from setsup_renderers.gl import GLRenderer
from setsup_renderers.pyrender import PyrenderRenderer

Run = Callable[..., Any]
OURS = (EmbreeRenderer, GLRenderer, PyrenderRenderer)


def lines(setsup: Run) -> dict[str, tuple[str, str]]:
    found = setsup("doctor", "--json")
    assert found.code == 0, "renderers are optional"
    checks = {check["name"]: (check["state"], check["detail"]) for check in found.json}
    return {name.removeprefix("renderer "): checks[name] for name in checks if name.startswith("renderer ")}


def says(monkeypatch: pytest.MonkeyPatch, **details: str | None) -> None:
    """Renderers that say on what they draw, or, where that is None, that they cannot."""
    for one in OURS:
        detail = details[one.name]

        def check(detail: str | None = detail) -> str:
            if detail is None:
                raise DataError("no driver: install one")
            return detail

        monkeypatch.setattr(one, "check", staticmethod(check))


@pytest.mark.long("renderings")
def test_each_renderer_says_on_what_it_draws_here(setsup: Run) -> None:
    found = lines(setsup)
    assert {"embree", "gl", "pyrender", "auto"} <= set(found)
    for one in OURS:
        try:
            wanted = ("ok", one.check())
        except DataError as error:
            wanted = ("absent", str(error))
        assert found[one.name] == wanted
    assert found["auto"][1].startswith(choose().name)
    assert re.search(r"^renderer auto +ok +\w+: .+", setsup("doctor").out, re.MULTILINE)


@pytest.mark.parametrize(
    ("embree", "gl", "pyrender", "auto"),
    [
        ("Embree, software", "a GPU", "a GPU", "gl"),
        ("Embree, software", "llvmpipe, software", None, "embree"),
        (None, "llvmpipe, software", None, "gl"),
        (None, None, "llvmpipe, software", "pyrender"),
    ],
)
def test_what_auto_takes_and_why(
    setsup: Run, monkeypatch: pytest.MonkeyPatch, embree: str | None, gl: str | None, pyrender: str | None, auto: str
) -> None:
    says(monkeypatch, embree=embree, gl=gl, pyrender=pyrender)
    found = lines(setsup)
    for name, detail in {"embree": embree, "gl": gl, "pyrender": pyrender}.items():
        assert found[name] == (("absent", "no driver: install one") if detail is None else ("ok", detail))
    state, why = found["auto"]
    assert (state, why.partition(": ")[0]) == ("ok", auto)
    assert len(why) > len(auto) + 5
    assert renderer("auto").name == auto


def test_no_renderer_at_all(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, embree=None, gl=None, pyrender=None)
    assert lines(setsup)["auto"][0] == "absent"
    assert "no renderer works on this machine; the lines above show the reasons" in setsup("doctor").out


def test_the_doctor_lists_every_library_and_what_needs_it(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    checks = {check["name"]: check for check in setsup("doctor", "--json").json}
    for one in LIBRARIES.values():
        state, detail = checks[one.package]["state"], checks[one.package]["detail"]
        assert one.use in detail
        assert detail.startswith("not installed" if state == "absent" else tuple("0123456789")), detail
        assert f"extra {one.extras[0]}" in detail if one.extras else f"pip install {one.package}" in detail
    assert checks["umap-learn"]["state"] == "absent"
    assert checks["torch"]["state"] == "ok"


def test_the_end_says_what_to_install_for_what(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"kornia", "trimesh", "embreex", "wandb"}
    for module in ("setsup_cli.commands.doctor", "setsup.optional"):
        monkeypatch.setattr(f"{module}.installed", lambda name: name not in absent)
    end = setsup("doctor").out.rpartition("to add")[2].splitlines()[2:]
    assert [line.partition("  ")[0] for line in end if not line.startswith(" ")] == [
        "pip install '.[torch]' in setsup's folder",
        "pip install '.[meshes]' in setsup's folder",
        "pip install '.[render]' in setsup's folder",
        "pip install wandb",
    ]
    assert end[0].endswith("  transforms")


def test_nothing_to_add(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup_cli.commands.doctor.installed", lambda name: True)
    assert "to add" not in setsup("doctor").out
