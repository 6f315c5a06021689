"""Words for the usual parts of a dataset, as names of folders and files and as levels of a factor have them."""

__all__ = ["SPLIT_WORDS", "usual_split"]

SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
"""Words for each part, those that ``datasets`` looks for."""

_SPLITS = {word: split for split, words in SPLIT_WORDS.items() for word in words}


def usual_split(word: str) -> str | None:
    """Part that a word stands for, None where it stands for none.

    Examples
    --------
    >>> usual_split("Val"), usual_split("evaluation"), usual_split("extra")
    ('validation', 'test', None)

    """
    return _SPLITS.get(word.lower())
