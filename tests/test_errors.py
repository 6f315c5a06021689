"""Errors are written for Python or for the command line, whatever the environment contains."""

import pytest

from setsup import FactorTable, SetSampler
from setsup.errors import SamplerError, advice, command_options, spell_name


@pytest.mark.parametrize("content", ["", "{", "size=--size", "[1]", "3", "null", '"--size"', "[" * 100_000, "\udcff"])
def test_other_content_of_the_variable_does_not_hide_an_error(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETSUP_OPTION_NAMES", content)
    assert command_options() is None
    assert advice("pass root=", "pass --root") == "pass root="
    table = FactorTable.from_values({"shape": ["cube", "ball"]})
    with pytest.raises(SamplerError, match=r"^size must be an integer"):
        SetSampler(table, ["shape"], size=-1)


def test_names_in_the_variable_that_are_not_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETSUP_OPTION_NAMES", '{"size": 3}')
    assert (spell_name("size"), spell_name("sets")) == ("3", "sets")
