"""Options by the names that they have in other programs."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.refusals import refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sample", "--fixed", "wall_hue"), "did you mean '--inactive'?"),
        (("sample", "--varying", "wall_hue"), "did you mean '--active'?"),
        (("sample", "--batch-size", "4"), "did you mean '--size'?"),
        (("sample", "--shuffle"), "draws are random, and --seed changes them"),
        (("sample", "--num-workers", "2"), "this subcommand does not load batches in worker processes"),
        (("pairs", "smallnorb-procedural", "--frames", "0", "8"), "the recipes room and object have it"),
        (("render", "room", "--moving", "5", "--out", "x"), "things move with --frames"),
        (("train", "abc/fig3a", "--batch-size", "4"), "did you mean '--sampler.size'?"),
    ],
)
def test_one_sentence_names_ours(setsup: Callable[..., Any], words: tuple[str, ...], said: str) -> None:
    refused(setsup(*words), f"unknown option {next(word for word in words if word.startswith('--'))!r}; {said}")
