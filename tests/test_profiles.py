"""Which examples property tests check."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(("profile", "same"), [("default", True), ("random", False)])
def test_only_the_profile_random_looks_for_new_examples(profile: str, same: bool) -> None:
    def examples() -> list[int]:
        found = []

        @settings(settings.get_profile(profile), database=None)
        @given(st.integers())
        def keep(number: int) -> None:
            found.append(number)

        keep()
        return found

    assert (examples() == examples()) is same
