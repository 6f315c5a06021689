import importlib.metadata
import logging
import sys
import types

import pytest

from setsup import packages
from setsup.errors import DataError
from setsup.scenes import Frame, Renderer, renderer, renderer_states, renderers
from setsup.scenes.renderers import choose


class _Plain:
    """A renderer that says what it is told to."""

    name = "plain"
    says = "a drawing board, software"

    @classmethod
    def check(cls) -> str:
        if cls.says.startswith("no"):
            raise DataError(cls.says)
        return cls.says

    def load(self, scene):
        self.scene = scene

    def render(self, camera):
        return Frame(*[None] * 5)

    def close(self):
        pass


@pytest.fixture
def offered(monkeypatch):
    """Put renderers into a module of another package, and offer them."""
    module = types.ModuleType("a_package")
    monkeypatch.setitem(sys.modules, "a_package", module)

    def offer(**classes):
        for name, one in classes.items():
            if one is not None:
                setattr(module, name, one)
        entries = [importlib.metadata.EntryPoint(name, f"a_package:{name}", "setsup.renderers") for name in classes]
        monkeypatch.setattr(renderers, "own_entries", lambda group: ())
        monkeypatch.setattr(renderers, "other_entries", lambda group: entries)

    return offer


def saying(words):
    return type("Told", (_Plain,), {"says": words})


def test_setsups_own_are_found_by_name():
    names = [state.name for state in renderer_states()]
    assert {"embree", "gl", "pyrender"} <= set(names)
    assert names == sorted(names)
    made = renderer("embree")
    assert made.name == "embree"
    assert isinstance(made, Renderer)


def test_those_of_other_packages_are_found_too(offered):
    offered(plain=_Plain)
    assert isinstance(renderer("plain"), _Plain)
    (state,) = renderer_states()
    assert (state.name, state.works, state.detail, state.hardware) == ("plain", True, _Plain.says, False)


def test_unknown_names_are_refused_with_a_hint(offered):
    with pytest.raises(DataError, match="unknown renderer 'embre'; did you mean 'embree'"):
        renderer("embre")
    offered()
    with pytest.raises(DataError, match="unknown renderer 'gl'; choose from auto"):
        renderer("gl")
    with pytest.raises(DataError, match="none of the renderers works on this machine: none is installed"):
        renderer()


@pytest.mark.parametrize(
    ("says", "chosen", "why"),
    [
        ({"gl": "NVIDIA H100", "embree": "rays, software"}, "gl", "a GPU draws"),
        (
            {"gl": "llvmpipe, software", "embree": "rays, software"},
            "embree",
            "no GPU renderer found; using Embree on the CPU",
        ),
        ({"gl": "no libEGL", "embree": "rays, software"}, "embree", "gl cannot render here"),
        (
            {"gl": "llvmpipe, software", "embree": "no wheel", "pyrender": "OSMesa, software"},
            "gl",
            "embree cannot render here",
        ),
        (
            {"gl": "no libEGL", "embree": "no wheel", "pyrender": "a GPU"},
            "pyrender",
            "gl and embree cannot render here",
        ),
        ({"gl": "no libEGL", "plain": "software", "zoo": "a GPU"}, "plain", "gl cannot render here"),
        ({"plain": "software"}, "plain", "the first that works"),
    ],
)
def test_auto_chooses_the_best_that_works(offered, caplog, says, chosen, why):
    offered(**{name: saying(words) for name, words in says.items()})
    state = choose()
    assert (state.name, state.why, state.works) == (chosen, why, True)
    assert state.hardware == ("software" not in says[chosen])
    with caplog.at_level(logging.INFO, "setsup"):
        assert type(renderer()).says == says[chosen]
    assert caplog.messages == [f"renderer {chosen}: {why} ({says[chosen]})"]


def test_auto_says_why_none_works(offered):
    offered(gl=saying("no libEGL: apt install libegl1"), embree=saying("no wheel"), zoo=saying("no animals"))
    with pytest.raises(
        DataError,
        match=r"none of the renderers works on this machine: gl: no libEGL: apt .*; embree: no wheel; zoo: no animals",
    ):
        renderer("auto")


def test_a_broken_package_is_one_sentence_and_spoils_nothing(offered):
    class Choosy(_Plain):
        def __init__(self, why):
            self.why = why

    class Failing(_Plain):
        @classmethod
        def check(cls):
            raise RuntimeError("segment lost")

    offered(
        gone=None,
        number=3,
        choosy=Choosy,
        failing=Failing,
        half=type("Half", (), {"check": _Plain.check}),
        plain=_Plain,
    )
    with pytest.raises(DataError, match=r"could not load the renderer 'gone' of the package a_package: AttributeError"):
        renderer("gone")
    with pytest.raises(DataError, match=r"the renderer 'number' .* is a_package:number, which does not implement"):
        renderer("number")
    with pytest.raises(DataError, match=r"could not create the renderer 'choosy' .* without arguments: .*why"):
        renderer("choosy")
    with pytest.raises(DataError, match=r"the renderer 'half' .* is a_package:half, which does not implement"):
        renderer("half")
    states = {state.name: state for state in renderer_states()}
    assert {name for name, state in states.items() if state.works} == {"choosy", "half", "plain"}
    assert states["failing"].detail == "RuntimeError: segment lost"
    assert "could not load" in states["gone"].detail
    assert choose().name in {"choosy", "half", "plain"}


def test_no_package_takes_the_place_of_setsups_own(monkeypatch):
    own = tuple(importlib.metadata.entry_points(group="setsup.renderers", name="embree"))
    other = importlib.metadata.EntryPoint("embree", "setsup_renderers.of_another:Other", "setsup.renderers")
    for entries in ([*own, other], [other, *own]):
        monkeypatch.setattr(packages, "entry_points", lambda group, entries=entries: entries)
        packages.own_entries.cache_clear()
        assert type(renderer("embree")).__name__ == "EmbreeRenderer"
    packages.own_entries.cache_clear()
