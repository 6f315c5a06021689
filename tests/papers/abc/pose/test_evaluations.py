"""Poses by look-up and by regression, for embeddings whose answer is known, against scipy's rotations."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup
from setsup.datasets import Dataset
from setsup.errors import DataError, SetsupError
from setsup.experiments.result_cache import PartStore
from setsup_papers.abc.pose.evaluations import PoseLookup, PoseRegression
from setsup_papers.abc.pose.lookup import draw_codebooks, look_up
from setsup_papers.abc.pose.measures import confused, disagreement, over_azimuth, summarise
from setsup_papers.abc.pose.poses import half_turned, nearest_rotations, read_rotations
from setsup_papers.abc.pose.rotations import rotation_from_euler
from tests.experiments.numbered import trained
from tests.papers.abc.pose.posed import ReadsPose, as_images, of_rotations, posed, random_rotations

CODEBOOK, TEST = random_rotations(300, 1), random_rotations(40, 2)


def angles(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Degrees between rotations (n, 3, 3), by scipy."""
    found: np.ndarray = np.degrees((Rotation.from_matrix(one) * Rotation.from_matrix(other).inv()).magnitude())
    return found


def run(codebook: Any = CODEBOOK, test: Any = TEST, named: bool = False, **options: Any) -> Any:
    both = [one if isinstance(one, Dataset) else of_rotations(one) for one in (codebook, test)]
    return trained(ReadsPose(named), both[0], **posed(*both, named=named, **options))


def test_the_nearest_pose_of_each_codebook_is_found() -> None:
    found = PoseLookup(codebooks=5, size=100).measure(run())
    books = draw_codebooks(np.arange(300), 5, 100)
    errors = np.array([[min(angles(CODEBOOK[book], np.repeat(one[None], 100, 0))) for one in TEST] for book in books])
    medians, shares = np.median(errors, axis=1), (errors < 30).mean(axis=1)
    assert found.values["median error"] == pytest.approx(medians.mean(), abs=0.5)  # of grey values
    assert found.values["median error: s.e.m."] == pytest.approx(medians.std(ddof=1) / np.sqrt(5), abs=0.2)
    assert found.values["Acc@30"] == pytest.approx(shares.mean(), abs=0.02)
    assert found.values["Acc@15"] == pytest.approx((errors < 15).mean(), abs=0.02)
    assert (found.values["images"], found.values["renderings"]) == (40, 100)
    assert found.pictures["retrieved"].mode == "RGB"


def test_a_network_that_exchanges_front_and_back_is_told() -> None:
    """The untrained one does, for the photographs too: so it is right where both are turned, and wrong where one is."""
    found = PoseLookup(codebooks=1, size=300, baselines=("untrained",)).measure(run()).values
    assert found["untrained: median error"] == pytest.approx(found["median error"])
    turned = trained(
        ReadsPose(named=True, turned=True), of_rotations(CODEBOOK), **posed(*map(of_rotations, [TEST] * 2))
    )
    measured = PoseRegression().measure(turned)
    assert measured.values["front-back"] == 1.0
    assert measured.values["Acc@30"] == 0.0
    assert set(measured.curves["front-back over azimuth"][1]) == {1.0}


def test_regression_reads_nine_numbers() -> None:
    found = PoseRegression(baselines=("untrained",)).measure(run(named=True)).values
    assert found["median error"] < 0.5
    assert found["untrained: median error"] == pytest.approx(180, abs=0.5)
    assert "median error: s.e.m." not in found
    with pytest.raises(SetsupError, match="no embedding named 'rotations'; did you mean 'rotation'"):
        PoseRegression(embedding="rotations").measure(run(named=True))


def test_what_has_no_pose_and_what_is_seen_from_too_high_is_left_out() -> None:
    low, high = rotation_from_euler([0, 120, 240], 10), rotation_from_euler([0, 120, 240], 50)
    test = np.concatenate([high, np.full((1, 3, 3), np.nan)])
    measure = PoseLookup(codebooks=2, size=3)
    some = run(np.concatenate([high, low, np.full((2, 3, 3), np.nan)]), test)
    found = replace(measure, elevation=28.65).measure(some).values
    assert (found["images"], found["renderings"]) == (3, 3)
    assert found["median error"] == pytest.approx(40, abs=0.5)
    assert replace(measure, size=6).measure(some).values["median error"] == pytest.approx(0, abs=0.5)
    with pytest.raises(DataError, match="posed has no rendering with a known pose below the elevation 5°"):
        replace(measure, elevation=5.0).measure(some)
    with pytest.raises(DataError, match="no photograph with a known pose"):
        measure.measure(run(test=np.full((2, 3, 3), np.nan)))


def test_codebooks_do_not_depend_on_the_seed_of_the_run_and_parts_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = PoseLookup(codebooks=3, size=50, baselines=("untrained",))
    one, other = (measure.measure(run(seed=seed)).values for seed in (0, 5))
    assert one == other
    assert one != replace(measure, codebook_seed=1).measure(run()).values
    some = run(store=PartStore(tmp_path, {}))
    before = measure.measure(some)
    monkeypatch.setattr("setsup_papers.abc.pose.lookup.look_up", None)
    again = measure.measure(some)
    assert (again.values, again.curves) == (before.values, before.curves)


def test_codebooks_that_are_all_the_same_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    found = PoseLookup(codebooks=2, size=1_000).measure(run()).values
    assert found["median error: s.e.m."] == 0
    assert "has 300 renderings, so all codebooks of 1000 are identical" in caplog.text


def test_shrunk_ones_run() -> None:
    assert PoseLookup().shrunk().measure(run()).values["renderings"] == 64
    assert PoseRegression().shrunk().measure(run(named=True)).values["images"] == 40


@pytest.mark.parametrize(
    "make", [lambda: PoseLookup(size=0), lambda: PoseLookup(codebooks=0), lambda: PoseRegression(samples=0)]
)
def test_counts_are_checked(make: Any) -> None:
    with pytest.raises(SetsupError, match="1 or more"):
        make()


def test_unknown_baselines_are_refused() -> None:
    with pytest.raises(SetsupError, match="baselines must be untrained, not 'random'"):
        PoseLookup(baselines=("random",))  # type: ignore[arg-type]


class TestMeasures:
    def test_means_over_codebooks_and_their_standard_errors(self) -> None:
        dice = np.random.default_rng(0)
        truth = random_rotations(30)
        turns = Rotation.from_rotvec(dice.normal(size=(4 * 30, 3)) * 0.4)
        predicted = (turns.as_matrix().reshape(4, 30, 3, 3)) @ truth
        errors = np.degrees(turns.magnitude()).reshape(4, 30)
        found = summarise(predicted, truth)
        columns = {
            "median error": np.median(errors, axis=1),
            "Acc@15": (errors < 15).mean(axis=1),
            "Acc@30": (errors < 30).mean(axis=1),
        }
        for name, column in columns.items():
            assert found[name] == pytest.approx(column.mean())
            assert found[f"{name}: s.e.m."] == pytest.approx(column.std(ddof=1) / 2)

    def test_half_a_turn_is_about_the_vertical_axis_of_the_object(self) -> None:
        azimuth = np.arange(0, 360, 30)
        assert np.allclose(half_turned(rotation_from_euler(azimuth, 20, 5)), rotation_from_euler(azimuth + 180, 20, 5))
        assert not confused(rotation_from_euler(azimuth + 149, 20), rotation_from_euler(azimuth, 20)).any()
        assert confused(rotation_from_euler(azimuth + 151, 20), rotation_from_euler(azimuth, 20)).all()

    def test_bins_have_their_middles_at_multiples(self) -> None:
        truth = rotation_from_euler([352.6, 7.4, 7.6, 100], [0, 10, 20, 30])
        found = over_azimuth(truth[None], truth)
        assert found.azimuth.tolist() == [0, 15, 105]
        assert found.count.tolist() == [2, 1, 1]

    def test_bins_are_equal(self) -> None:
        truth = rotation_from_euler(np.arange(0, 360, 7.5), 0)  # two in each bin
        assert over_azimuth(truth[None], truth).count.tolist() == [2] * 24

    @pytest.mark.parametrize("codebooks", [3, 10, 50])
    def test_equal_codebooks_have_no_spread(self, codebooks: int) -> None:
        truth = rotation_from_euler([0, 100, 250, 300, 20, 7, 9], 10)
        found = summarise(np.stack([rotation_from_euler([0.1, 101, 280, 120, 20, 9, 10], 10)] * codebooks), truth)
        assert {value for name, value in found.items() if name.endswith("s.e.m.")} == {0.0}

    def test_disagreement_is_the_mean_over_pairs(self) -> None:
        some = random_rotations(4, 7)
        pairs = [(a, b) for a in range(4) for b in range(a)]
        expected = np.mean([angles(some[a][None], some[b][None])[0] for a, b in pairs])
        assert disagreement(some) == pytest.approx(expected)
        assert disagreement(some[:1]) == 0
        assert disagreement(np.stack([some, some])).shape == (2,)

    def test_the_nearest_rotation_is_that_of_scipy(self) -> None:
        dice = np.random.default_rng(0)
        near = TEST + 0.3 * dice.normal(size=TEST.shape)  # some of them mirrored
        vectors = np.eye(3)
        expected = [Rotation.align_vectors(one.T, vectors)[0].as_matrix() for one in near]  # Kabsch's
        np.testing.assert_allclose(nearest_rotations(near), expected, atol=1e-7)
        with pytest.raises(DataError, match="not finite"):
            nearest_rotations(np.full((3, 3), np.nan))

    @pytest.mark.parametrize("shape", [(30, 3, 3), (0, 30, 3, 3), (2, 29, 3, 3)])
    def test_shapes_are_checked(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(DataError, match=r"predicted poses must have the shape \(codebooks, n, 3, 3\)"):
            summarise(np.zeros(shape), random_rotations(30))


@pytest.mark.parametrize(
    "call",
    [
        lambda wrong: look_up(wrong, np.eye(3), [[0]]),
        lambda wrong: look_up(np.eye(3), wrong, [[0]]),
        lambda wrong: look_up(np.eye(3), np.eye(3), wrong),
        lambda wrong: draw_codebooks(wrong),
        lambda wrong: draw_codebooks([1, 2], wrong),
        lambda wrong: draw_codebooks([1, 2], 1, wrong),
        lambda wrong: draw_codebooks([1, 2], 1, 1, wrong),
        lambda wrong: summarise(wrong, TEST),
        lambda wrong: summarise(TEST[None], wrong),
        lambda wrong: over_azimuth(TEST[None], wrong),
        lambda wrong: over_azimuth(TEST[None], TEST, wrong),
        lambda wrong: confused(wrong, TEST),
        lambda wrong: confused(TEST, wrong),
        lambda wrong: disagreement(wrong),
        lambda wrong: half_turned(wrong),
        lambda wrong: nearest_rotations(wrong),
    ],
)
def test_wrong_arguments_are_one_sentence(call: Any) -> None:
    hostile = [None, True, -1, 2**70, 1.5, np.nan, "", b"x", object(), [], {}, [None], [[1], [1, 2]], 1j]
    hostile += [
        np.zeros((0, 3)),
        np.full((2, 3, 3), np.nan),
        np.zeros((2, 3, 3)),
        np.array([None, "a"]),
        np.zeros((1, 9)),
    ]
    for wrong in hostile:
        with suppress_result() as said:
            call(wrong)
        assert all("\n" not in str(error) for error in said)


@contextmanager
def suppress_result() -> Iterator[list[SetsupError]]:
    """Whatever comes of it, a result or one of the errors that are sentences."""
    said: list[SetsupError] = []
    try:
        yield said
    except SetsupError as error:
        said.append(error)


class TestPosesOfData:
    def test_factors_are_angles_of_pascal3d(self) -> None:
        azimuth, elevation, theta = [10.0, 200.0, 355.5], [0.5, 20.0, -5.0], [0.0, -8.0, 3.0]
        expected = Rotation.from_euler(
            "zxz", np.stack([-np.array(azimuth), np.array(elevation) - 90, -np.array(theta)], 1), degrees=True
        ).as_matrix()
        columns = {"azimuth": azimuth, "elevation": elevation, "theta": theta}
        for tilt in ("theta", "tilt"):
            named = {(tilt if name == "theta" else name): values for name, values in columns.items()}
            found = read_rotations(setsup.from_arrays(as_images(expected), named))
            np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_allclose(
            read_rotations(setsup.from_arrays(as_images(expected), named), [2]), expected[2:], atol=1e-6
        )

    def test_levels_serve_as_numbers(self) -> None:
        some = setsup.from_arrays(as_images(TEST[:2]), {"azimuth": [0, 90], "elevation": [15, 15]})
        np.testing.assert_allclose(read_rotations(some), rotation_from_euler([0, 90], 15), atol=1e-12)

    @pytest.mark.parametrize(
        ("columns", "words"),
        [
            ({"azimuth": [1.0, 2.0]}, r"expected the modality 'rotation' .* or the factors azimuth and elevation"),
            ({"azimuth": ["left", "right"], "elevation": [0, 1]}, "'azimuth' of arrays must contain numbers"),
        ],
    )
    def test_data_without_poses(self, columns: Any, words: str) -> None:
        with pytest.raises(DataError, match=words):
            read_rotations(setsup.from_arrays(as_images(TEST[:2]), columns))

    def test_matrices_of_another_shape(self) -> None:
        arrays = {"image": as_images(TEST), "rotation": np.zeros((40, 3), np.float32)}
        with pytest.raises(DataError, match=r"'rotation' of arrays must have the shape \(3, 3\), not \(3,\)"):
            read_rotations(setsup.from_arrays(arrays, {"number": np.arange(40)}))
