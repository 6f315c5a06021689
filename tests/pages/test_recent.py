"""Results that threads share: each is made once, and an error is for those who wait for it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from setsup.pages.recent import Recent


def test_what_several_threads_ask_for_is_made_once():
    made, together, recent = [], Barrier(4), Recent[str, int](2)

    def make():
        made.append(1)
        begun.wait(10)
        return 7

    def ask():
        together.wait(10)
        return recent.get("a", make)

    begun = Event()
    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
        # another key waits for none of them
        assert pool.submit(lambda: recent.get("b", lambda: 8)).result(10) == 8
        begun.set()
        assert [one.result(10) for one in asked] == [7] * 4
    assert made == [1]


def test_errors_are_not_kept():
    recent = Recent[str, float](2)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: 1 / 0)
    assert recent.get("a", lambda: 2) == 2


def test_the_last_ones_are_kept():
    recent = Recent[int, int](2)
    for key in (1, 2, 1, 3):
        recent.get(key, lambda key=key: key)
    made = []
    for key in (1, 3, 2):
        recent.get(key, lambda key=key: made.append(key) or 0)
    assert made == [2]
