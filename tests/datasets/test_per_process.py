"""Values that each process makes for itself."""

import multiprocessing
import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from setsup.datasets.per_process import per_process


class Reader:
    """Counts how often its value was made."""

    def __init__(self):
        self.made = 0

    @per_process
    def value(self):
        time.sleep(0.02)  # so that threads meet
        self.made += 1
        return os.getpid(), self.made


def test_it_is_made_once_by_many_threads():
    reader = Reader()
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: reader.value, range(16))) == {(os.getpid(), 1)}
    del reader.value
    assert reader.value == (os.getpid(), 2)
    del reader.value
    del reader.value  # nothing to forget


def test_it_is_not_pickled():
    reader = Reader()
    assert reader.value == (os.getpid(), 1)
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.value == (os.getpid(), 2)
    assert reader.value == (os.getpid(), 1)


def test_what_fails_is_tried_again():
    class Failing:
        tries = 0

        @per_process
        def value(self):
            self.tries += 1
            if self.tries == 1:
                raise ValueError("not yet")
            return self.tries

    failing = Failing()
    with pytest.raises(ValueError, match="not yet"):
        failing.value  # noqa: B018
    assert failing.value == 2


def test_a_forked_child_makes_its_own():
    reader = Reader()
    assert reader.value[0] == os.getpid()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        process, made = pool.apply(getattr, (reader, "value"))
        assert (process, made) != reader.value
        assert process != os.getpid()
