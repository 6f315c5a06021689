"""How often a side is called to fill a block, by a clock that only the calls move."""

import pytest

from benchmarks.measure import Side, alternate


class Clock:
    """What has been spent so far."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, 0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds
        self.calls += 1


@pytest.mark.long("measurements")
@pytest.mark.parametrize("call", [pytest.param(3e-8, marks=pytest.mark.smoke), 1e-6, 1e-4, 0.011, 0.5, 7.0])
def test_a_block_is_as_long_as_asked_for_and_not_much_longer(call: float) -> None:
    clock = Clock()
    found = alternate({"one": Side(lambda: clock.spend(call), 4)}, blocks=3, seconds=0.4, clock=clock)
    assert found["one"] == pytest.approx([call / 4] * 3, rel=1e-3)
    calibrated = clock.now - 3 * 4 * found["one"].mean() * round(0.4 / call)
    assert calibrated < 12 * max(0.4, call)
    assert clock.now >= 3 * 0.4


@pytest.mark.parametrize("ahead", [1, 2, 8, 40])
def test_a_stream_that_is_ahead_is_not_asked_for_many_times_more(ahead: int) -> None:
    clock = Clock()

    def batch() -> None:
        clock.spend(1e-6 if clock.calls < ahead else 0.1)

    found = alternate({"stream": Side(batch)}, blocks=5, seconds=2, clock=clock)
    assert found["stream"] == pytest.approx([0.1] * 5)
    assert clock.calls < 10 * ahead + 10 * 2 / 0.1 + 5 * 2 * 2 / 0.1
