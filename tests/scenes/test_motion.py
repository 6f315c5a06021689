"""Motions beside scipy: Slerp, matrix exponentials, Hermite splines and piecewise linear interpolation."""

import pickle

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.linalg import expm
from scipy.spatial.transform import Rotation, Slerp

from setsup.errors import SetsupError
from setsup.scenes import Keyframes, Path, Placement, Scene, Velocity, moved
from setsup.scenes.meshes.primitives import box
from setsup.scenes.motion import Motion, same_placements
from setsup.scenes.portable import angle


def rotations(rng, count):
    return Rotation.from_quat(rng.normal(size=(count, 4)))


def skew(vector):
    x, y, z = vector
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


@pytest.mark.parametrize("seed", range(20))
def test_keyframes_are_slerp_and_linear(seed):
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.01, 2, 6)) - 3
    turns, points = rotations(rng, 6), rng.normal(size=(6, 3))
    motion = Keyframes(times, turns.as_matrix(), points)
    at = np.append(rng.uniform(times[0], times[-1], (4, 5)).ravel(), times)
    pose = motion.pose(at)
    assert np.abs(pose.rotation - Slerp(times, turns)(at).as_matrix()).max() < 2e-14
    wanted = np.stack([np.interp(at, times, column) for column in points.T], axis=1)
    assert np.abs(pose.translation - wanted).max() < 1e-14
    assert np.array_equal(motion.pose(times[-1] + 5).rotation, motion.rotations[-1])
    assert np.array_equal(motion.pose(times[0] - 5).rotation, motion.rotations[0])
    assert np.array_equal(motion.pose(times).translation, motion.translations)


@pytest.mark.parametrize("turn", [0.0, 1e-300, 1e-12, 1e-6, 1e-3, 1.0, 3.0, np.pi - 1e-9])
def test_keyframes_of_small_and_large_turns(turn):
    axis = np.array([0.48, -0.6, 0.64])
    first = Rotation.from_rotvec([0.3, 0.2, -0.9])
    motion = Keyframes(
        [0, 1], [first.as_matrix(), (first * Rotation.from_rotvec(turn * axis)).as_matrix()], np.eye(3)[:2]
    )
    wanted = first.as_matrix() @ expm(skew(0.25 * turn * axis))
    # a turn is known from a matrix to 1e-16, at half a turn its axis to 1e-8
    assert np.abs(motion.pose(0.25).rotation - wanted).max() < (1e-7 if turn > 3.1 else 1e-15)


@pytest.mark.parametrize("seed", range(10))
def test_velocity_is_a_matrix_exponential(seed):
    rng = np.random.default_rng(seed)
    start, centre, linear, angular, at = (rng.normal(size=3) for _ in range(5))
    turn = rotations(rng, 1).as_matrix()[0]
    motion = Velocity(turn, start, linear, angular, centre)
    times = rng.uniform(-3, 3, (2, 4))
    pose = motion.pose(times)
    assert (pose.rotation.shape, pose.translation.shape) == ((2, 4, 3, 3), (2, 4, 3))
    for time, rotation, translation in zip(
        times.ravel(), pose.rotation.reshape(-1, 3, 3), pose.translation.reshape(-1, 3), strict=True
    ):
        turned = expm(skew(time * angular))
        assert np.abs(rotation - turned @ turn).max() < 2e-13
        # the body at time 0 turns about its centre, which moves
        wanted = centre + time * linear + turned @ (turn @ at + start - centre)
        assert np.abs(rotation @ at + translation - wanted).max() < 2e-12
    own = Velocity(turn, start, linear, angular).pose(2.5)
    assert np.abs(own.translation - (start + 2.5 * linear)).max() < 1e-14


@pytest.mark.parametrize("seed", range(10))
def test_paths_are_splines_and_polylines(seed):
    rng = np.random.default_rng(seed)
    times, points = np.cumsum(rng.uniform(0.1, 2, 5)), rng.normal(size=(5, 3))
    at = np.append(rng.uniform(times[0], times[-1], 50), times)
    slopes = np.array(
        [
            (points[min(n + 1, 4)] - points[max(n - 1, 0)]) / (times[min(n + 1, 4)] - times[max(n - 1, 0)])
            for n in range(5)
        ]
    )
    wanted = CubicHermiteSpline(times, points, slopes)(at)
    angular = rng.normal(size=3)
    pose = Path(times, points, angular=angular).pose(at)
    assert np.abs(pose.translation - wanted).max() < 1e-14
    assert np.abs(pose.rotation[7] - expm(skew(at[7] * angular))).max() < 2e-13
    straight = np.stack([np.interp(at, times, column) for column in points.T], axis=1)
    assert np.abs(Path(times, points, smooth=False).pose(at).translation - straight).max() < 1e-14
    assert np.array_equal(Path(times, points).pose([-9, 99]).translation, points[[0, -1]])


def test_single_times():
    pose = Keyframes([3], np.eye(3)[None], [[1, 2, 3]]).pose([-1, 3, 8])
    assert np.array_equal(pose.translation, np.tile([1, 2, 3], (3, 1)))
    assert np.array_equal(pose.rotation, np.tile(np.eye(3), (3, 1, 1)))
    assert Path([3], [[1, 2, 3]]).pose(0).translation.tolist() == [1, 2, 3]
    assert isinstance(Path([3], [[1, 2, 3]]), Motion)


def test_rotations_stay_rotations():
    turning = Velocity(angular=(1e5, -2e5, 3e5)).pose(np.linspace(-9, 9, 1001)).rotation
    assert np.abs(turning @ np.swapaxes(turning, 1, 2) - np.eye(3)).max() < 1e-14


def test_pickled_motions_are_read_only():
    keyframes = Keyframes([0, 1], np.stack([np.eye(3), np.diag([-1.0, -1, 1])]), np.eye(3)[:2])
    velocity = Velocity(translation=(1, 2, 3), linear=(1, 0, 0), angular=(0, 2, 0), centre=(0, 0, 1))
    path = Path([0, 1, 3], np.eye(3), angular=(0, 2, 0), smooth=False)
    for motion, name in ((keyframes, "rotations"), (velocity, "centre"), (path, "points")):
        copied = pickle.loads(pickle.dumps(motion))
        assert not getattr(copied, name).flags.writeable
        for one, two in zip(motion.pose([0.3, 2]), copied.pose([0.3, 2]), strict=True):
            assert np.array_equal(one, two)


def test_angles_are_arc_tangents():
    rng = np.random.default_rng(0)
    turn = np.concatenate([rng.uniform(0, np.pi, 10_000), [0, 1e-300, 1e-9, np.pi / 4, np.pi / 2, np.pi - 1e-9, np.pi]])
    far = 10.0 ** rng.uniform(-100, 100, len(turn))
    sine, cosine = np.abs(far * np.sin(turn)), far * np.cos(turn)
    assert np.abs(angle(sine, cosine) - np.arctan2(sine, cosine)).max() < 9e-16
    assert angle(0, 0) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Keyframes([0, 0], np.tile(np.eye(3), (2, 1, 1)), np.zeros((2, 3))), "increasing"),
        (lambda: Keyframes([], np.empty((0, 3, 3)), np.empty((0, 3))), "one or more"),
        (lambda: Keyframes([0, 1], np.eye(3), np.zeros((2, 3))), "rotations of keyframes must be 2 × 3 × 3"),
        (lambda: Keyframes([0, 1], 2 * np.tile(np.eye(3), (2, 1, 1)), np.zeros((2, 3))), "rotation 0 of keyframes"),
        (lambda: Keyframes([0, np.nan], np.tile(np.eye(3), (2, 1, 1)), np.zeros((2, 3))), "finite"),
        (lambda: Velocity(linear=(0, 1)), "linear of a motion"),
        (lambda: Path([0, 1], np.zeros((3, 3))), "points of a path must be 2 × 3"),
        (lambda: Path([0], [[0, 0, 0]], smooth="no"), "smooth"),
        (lambda: Velocity().pose(np.inf), "finite"),
        (lambda: Velocity().pose("later"), "time must be an array"),
        (lambda: Velocity(angular=(0, 0, 1e18)).pose(1), "turns by 1e\\+18 radians"),
        (lambda: Path([0], [[0, 0, 0]], angular=(0, 0, 1e200)).pose([0, 1e200]), "turns by inf radians"),
        (lambda: moved(Scene(), {0: Velocity()}, 0.0), "number of a placement"),
        (lambda: moved(Scene(), {}, np.nan), "time of moved must be"),
        (lambda: moved(Scene(), {}, [0, 1]), "time of moved must be"),
        (lambda: moved(Scene((Placement(box((1, 1, 1))),)), {0: Velocity}, 0.0), "motion of placement 0 must have"),
        (lambda: moved(Scene((Placement(box((1, 1, 1))),)), {0: 1.5}, 0.0), "motion of placement 0 must have"),
        (lambda: moved(Scene(), [Velocity()], 0.0), "motions of moved must be"),
    ],
)
def test_wrong_motions(make, message):
    with pytest.raises(SetsupError, match=message):
        make()


def test_moved_scenes_have_the_same_placements():
    cube = box((1, 1, 1))
    scene = Scene((Placement(cube), Placement(cube, scale=(1, 2, 1), name="tall")))
    motions = {1: Velocity(translation=(0, 0, 1), linear=(1, 0, 0), angular=(0, 0, 1))}
    one, two = moved(scene, motions, 0.0), moved(scene, motions, 1.5)
    assert two.placements[1].translation.tolist() == [1.5, 0, 1]
    assert np.abs(two.placements[1].rotation - expm(skew((0, 0, 1.5)))).max() < 1e-15
    assert same_placements(one, two)
    assert same_placements(one, pickle.loads(pickle.dumps(two)))
    assert np.array_equal(one.triangles.placement, two.triangles.placement)
    others = (
        Scene(two.placements[:1]),
        Scene(two.placements[::-1]),
        Scene((Placement(box((1, 1, 2))), two.placements[1])),
        Scene((Placement(cube, scale=(1, 1, 3)), two.placements[1])),
        Scene((Placement(cube, instance=7), two.placements[1])),
    )
    assert not any(same_placements(one, other) for other in others)


def test_motions_pickle():
    motion = pickle.loads(pickle.dumps(Keyframes([0, 1], np.tile(np.eye(3), (2, 1, 1)), [[0, 0, 0], [1, 1, 1]])))
    assert motion.pose(0.5).translation.tolist() == [0.5, 0.5, 0.5]
