"""What every subcommand promises of what it refuses, stated once."""

from typing import Any


def refused(result: Any, *sentences: str) -> None:
    """Exit status 2, nothing on standard output, and one line on standard error in which the sentences stand.

    An error in an expression has two lines more: the expression, and a mark below the column.
    """
    assert (result.code, result.out) == (2, ""), result.err
    assert result.err.startswith(("setsup: ", '{"error": "'))
    _, *pointed = result.err.splitlines()
    assert not pointed or (len(pointed) == 2 and "^ column " in pointed[1]), result.err
    for sentence in sentences:
        assert sentence in result.err, result.err
