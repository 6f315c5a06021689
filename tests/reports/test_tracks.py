"""Sheets of tracks: where dots are, what has none, and what is refused."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.reports import track_sheet

BLACK = [np.zeros((60, 80, 3), np.uint8)] * 2


def tile(sheet, plain):
    """Boxes of the pixels that differ from the sheet without tracks."""
    changed = (np.asarray(sheet, int) != np.asarray(plain, int)).any(axis=2)
    return np.argwhere(changed)


def test_dots_are_where_points_are():
    nothing = np.full((1, 2, 2), np.nan)
    unseen = np.full((1, 2), 3, np.uint8)
    plain = track_sheet([BLACK], [nothing], [unseen], tile=240)
    left = track_sheet([BLACK], [np.array([[[20.0, 30.0], [np.nan, np.nan]]])], [np.zeros((1, 2), np.uint8)], tile=240)
    found = tile(left, plain)
    # on the first frame alone, three pixels of the sheet for one of the frame
    corner = np.argwhere((np.asarray(plain) == 0).all(axis=2)).min(axis=0)
    middle = found.mean(axis=0) - corner
    assert np.abs(middle - [30.5 * 3 - 0.5, 20.5 * 3 - 0.5]).max() < 1
    assert np.ptp(found, axis=0).max() < 12


def test_tails_lead_to_where_points_were():
    points = np.array([[[10.0, 30.0], [70.0, 30.0]]])
    plain = track_sheet([BLACK], [np.full((1, 2, 2), np.nan)], [np.full((1, 2), 3, np.uint8)], tile=240)
    seen, hidden = (track_sheet([BLACK], [points], [np.array([[0, state]], np.uint8)], tile=240) for state in (0, 1))
    assert np.ptp(tile(seen, plain)[:, 1]) > 60 * 3
    assert 0 < len(tile(seen, hidden)) < 40


def test_what_does_not_fit_together():
    points, status = np.zeros((4, 2, 2)), np.zeros((4, 2), np.uint8)
    with pytest.raises(DataError, match="at least one video"):
        track_sheet([], [], [])
    with pytest.raises(DataError, match="at least one video"):
        track_sheet([BLACK], [points], [])
    for other in (points[:, :1], points[:3]):
        with pytest.raises(DataError, match=r"must have shapes \(N, 2, 2\) and \(N, 2\)"):
            track_sheet([BLACK], [other], [status])
