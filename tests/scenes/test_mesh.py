import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import SetsupError
from setsup.scenes import Material, Mesh

SQUARE = {
    "vertices": np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]),
    "faces": np.array([[0, 1, 2], [0, 2, 3]]),
    "normals": np.array([[0, 0, 1.0]] * 4),
    "uv": np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]),
    "colors": np.arange(12, dtype=np.uint8).reshape(4, 3),
    "materials": (Material((1, 2, 3)), Material((4, 5, 6), np.zeros((2, 2, 3), np.uint8))),
    "material": np.array([0, 1]),
}


def square(**changed):
    return Mesh(**{**SQUARE, **changed})


def test_arrays_are_kept_read_only_in_their_dtypes():
    mesh = square()
    dtypes = {"vertices": "f8", "faces": "i4", "normals": "f4", "uv": "f4", "colors": "u1", "material": "u2"}
    for name, dtype in dtypes.items():
        array = getattr(mesh, name)
        assert array.dtype == dtype
        assert np.array_equal(array, SQUARE[name])
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert not mesh.materials[1].texture.flags.writeable


def test_arrays_of_others_are_not_touched_and_not_followed():
    vertices, colors = SQUARE["vertices"].copy(), SQUARE["colors"].copy()
    mesh = square(vertices=vertices, colors=colors)
    digest = mesh.digest
    vertices[0] = 7
    colors[0] = 7
    assert mesh.vertices[0].tolist() == [0, 0, 0]
    assert mesh.colors[0].tolist() == [0, 1, 2]
    assert mesh.digest == digest
    kept = mesh.vertices
    assert square(vertices=kept).vertices is kept  # what is read-only is shared


def test_corners_and_bounds():
    mesh = square(vertices=np.concatenate([SQUARE["vertices"][:3], [[0, 1, 2.0]]]), faces=[[0, 1, 2]], material=[1])
    assert mesh.corners.tolist() == [[[0, 0, 0], [1, 0, 0], [1, 1, 0]]]
    assert mesh.bounds.tolist() == [[0, 0, 0], [1, 1, 0]]  # a vertex without a triangle is not there


def _another(value):
    """A value that differs a little."""
    array = np.array(value)
    array.reshape(-1)[-1] += 1
    return array


CHANGES = {
    **{name: {name: _another(SQUARE[name])} for name in ("vertices", "normals", "uv", "colors")},
    "a face": {"faces": [[0, 1, 2], [0, 2, 1]]},
    "the order of faces": {"faces": [[0, 2, 3], [0, 1, 2]]},
    "material": {"material": [1, 1]},
    "no material": {"material": None},
    "no normals": {"normals": None},
    "no uv": {"uv": None},
    "no colors": {"colors": None},
    "a color of a material": {"materials": (Material((1, 2, 4)), SQUARE["materials"][1])},
    "a texture": {"materials": (SQUARE["materials"][0], Material((4, 5, 6), np.ones((2, 2, 3), np.uint8)))},
    "the shape of a texture": {
        "materials": (SQUARE["materials"][0], Material((4, 5, 6), np.zeros((1, 4, 3), np.uint8)))
    },
    "no texture": {"materials": (SQUARE["materials"][0], Material((4, 5, 6)))},
    "the order of materials": {"materials": SQUARE["materials"][::-1]},
    "one more material": {"materials": (*SQUARE["materials"], Material())},
    "a last bit": {"vertices": np.nextafter(SQUARE["vertices"], 9)},
}


def test_digests_differ_for_whatever_differs():
    digests = [square().digest, *(square(**changed).digest for changed in CHANGES.values())]
    assert len(set(digests)) == len(digests)


def test_digests_agree_for_whatever_agrees():
    digest = square().digest
    assert square().digest == digest
    # the same numbers in other containers, dtypes and orders of memory
    assert square(vertices=SQUARE["vertices"].tolist(), faces=SQUARE["faces"].astype(np.uint64)).digest == digest
    assert square(vertices=np.asfortranarray(SQUARE["vertices"]), uv=SQUARE["uv"].astype(np.float32)).digest == digest
    assert square(materials=list(SQUARE["materials"])).digest == digest


@given(st.integers(0, 11), st.floats(-1e6, 1e6))
def test_one_coordinate_makes_the_digest(place, value):
    vertices = SQUARE["vertices"].copy()
    before = vertices.reshape(-1)[place]
    vertices.reshape(-1)[place] = value
    same = np.float64(before).tobytes() == np.float64(value).tobytes()
    assert (square(vertices=vertices).digest == square().digest) == same


@pytest.mark.parametrize("again", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy, copy.copy])
def test_copies_are_the_same_and_read_only(again):
    mesh = square()
    assert mesh.digest  # what was computed is not carried along
    found = again(mesh)
    assert found is not mesh
    assert found.digest == mesh.digest
    assert not any(getattr(found, name).flags.writeable for name in ("vertices", "faces", "normals", "uv", "colors"))
    assert not found.materials[1].texture.flags.writeable
    assert found != mesh  # meshes are equal where they are one; digests tell more
    assert mesh == mesh


def test_meshes_that_renderers_must_bear():
    """Degenerate and non-manifold meshes keep all of their triangles, so that numbers stay."""
    flat = Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2], [0, 0, 0], [1, 1, 2]])
    assert len(flat.corners) == 3
    point = Mesh([[1, 2, 3]], [[0, 0, 0]])
    assert point.bounds.tolist() == [[1, 2, 3], [1, 2, 3]]
    fins = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]], [[0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 1, 4]])
    assert len(fins.faces) == 4
    vast = Mesh([[-1e6, 0, 0], [1e6, 0, 0], [0, 1e6, 0]], [[0, 1, 2]])
    assert np.ptp(vast.bounds, axis=0).tolist() == [2e6, 1e6, 0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"faces": np.empty((0, 3), int), "material": None}, "with at least one row, not of shape"),
        ({"faces": [[0, 1, 4], [0, 1, 2]]}, r"its 4 vertices, but triangle 0 is \[0, 1, 4\]"),
        ({"faces": [[0, 1, 2], [0, 1, -1]]}, "triangle 1 is"),
        ({"faces": [[0, 1, 2**40], [0, 1, 2]]}, "triangle 0 is"),
        ({"faces": [[0.0, 1, 2], [0, 1, 2]]}, "integers, not float64"),
        ({"faces": [[0, 1, 2, 3]]}, r"\(f, 3\)"),
        ({"faces": [[0, 1, 2], [0, 1]]}, "faces of a mesh must be an array"),
        ({"faces": [[True, True, False]] * 2}, "integers, not bool"),
        ({"vertices": np.empty((0, 3))}, "its 0 vertices"),
        ({"vertices": SQUARE["vertices"][:, :2]}, r"vertices of a mesh must be a numeric array of shape \(v, 3\)"),
        ({"vertices": [[0, 0, 0], [1, 0]]}, "vertices of a mesh must be an array"),
        ({"vertices": [[0, 0, 0], [np.nan, 0, 0], [0, 0, np.inf]]}, r"row 1 is \[nan, 0.0, 0.0\] \(2 such rows\)"),
        ({"vertices": [[0, 0, 0], [0, 2e6, 0], [0, 0, 0]]}, "within 1,000,000 m, but row 1"),
        ({"vertices": [["a", "b", "c"]]}, "must contain numbers"),
        ({"vertices": SQUARE["vertices"] + 0j}, "must contain numbers"),
        ({"vertices": None}, "must be"),
        ({"normals": SQUARE["normals"][:3]}, r"normals of a mesh must be a numeric array of shape \(4, 3\)"),
        ({"normals": SQUARE["normals"] * np.nan}, "normals of a mesh must be finite, .* row 0"),
        ({"normals": SQUARE["normals"] * 1e300}, "normals of a mesh must be finite, .* row 0"),
        ({"normals": SQUARE["normals"] * [[1], [1], [0], [1]]}, "normals of a mesh must not be zero, but row 2"),
        ({"uv": np.zeros((4, 3))}, r"uv of a mesh must be a numeric array of shape \(4, 2\)"),
        ({"uv": np.full((4, 2), np.inf)}, "uv of a mesh must be finite, but row 0"),
        ({"colors": np.zeros((4, 4), np.uint8)}, r"colors of a mesh must be a numeric array of shape \(4, 3\)"),
        ({"colors": np.zeros((4, 3))}, "must be uint8, not float64"),
        ({"colors": np.zeros((4, 3), int)}, "must be uint8, not int64"),
        ({"materials": ()}, "at least one Material"),
        ({"materials": ("red",)}, "at least one Material"),
        ({"material": [0]}, "one integer per triangle"),
        ({"material": [0.0, 1.0]}, "one integer per triangle"),
        ({"material": [0, 2]}, r"must be from 0 to 1, not from 0 to 2"),
        ({"material": [-1, 0]}, r"must be from 0 to 1, not from -1 to 0"),
        ({"material": [0, 70_000], "materials": SQUARE["materials"] * 40_000}, r"must be from 0 to 65535"),
    ],
)
def test_what_is_no_mesh_is_refused(changed, message):
    with pytest.raises(SetsupError, match=message) as error:
        square(**changed)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0, 0),), "three bytes"),
        (((0, 0, 256),), "three bytes"),
        (((0, -1, 0),), "three bytes"),
        (((0.5, 0.5, 0.5),), "three bytes"),
        (("red",), "three bytes"),
        (((0, (0, 0), 0),), "three bytes"),
        (((0, 0, 0), np.zeros((2, 2), np.uint8)), r"array of shape \(h, w, 3\), bytes"),
        (((0, 0, 0), np.zeros((2, 2, 4), np.uint8)), r"array of shape \(h, w, 3\), bytes"),
        (((0, 0, 0), np.zeros((0, 2, 3), np.uint8)), r"array of shape \(h, w, 3\), bytes"),
        (((0, 0, 0), np.zeros((2, 2, 3))), "must be uint8"),
    ],
)
def test_what_is_no_material_is_refused(arguments, message):
    with pytest.raises(SetsupError, match=message):
        Material(*arguments)


def test_colors_of_materials_are_plain_numbers():
    assert Material(np.array([1, 2, 3], np.uint8)).color == (1, 2, 3)
    assert all(type(channel) is int for channel in Material(np.array([1, 2, 3])).color)
