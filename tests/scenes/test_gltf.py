"""glTF files: every feature is applied, named in the log, or refused by name."""

import io
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from setsup.errors import DataError
from setsup.scenes import load_mesh
from setsup.scenes.meshes.materials import warn_once
from tests.fuzzing import survives
from tests.scenes.gltf_files import FACES, SQUARE, Writer

CASES = Path(__file__).parent / "cases" / "gltf"
TEXTURE = np.random.default_rng(0).integers(0, 256, (4, 4, 3)).astype(np.uint8)
DICE = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def warned(caplog):
    warn_once.cache_clear()
    caplog.set_level(logging.WARNING, "setsup")
    yield caplog
    warn_once.cache_clear()


def png(pixels=TEXTURE, kind="PNG"):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


# -- the cases of the issue ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "least"), [("uvu16n.glb", 65535), ("uvu8n.glb", 255), ("texcoord1.glb", np.inf)])
def test_texture_coordinates_of_other_types_and_sets(name, least):
    expected = load_mesh(CASES / "float.glb")
    # as the file's own bytes have them: its corners from (.1, .8) to (.9, .2), counted from above
    assert np.allclose(expected.uv, [[0.1, 0.2], [0.9, 0.2], [0.9, 0.8], [0.1, 0.8]], atol=1e-6)
    found = load_mesh(CASES / name)
    assert np.abs(found.uv[found.faces] - expected.uv[expected.faces]).max() <= 1 / least + 1e-6
    assert np.array_equal(found.corners, expected.corners)


def test_vertex_colors_of_sixteen_bits():
    found, expected = load_mesh(CASES / "colu16.glb"), load_mesh(CASES / "colf.glb")
    assert set(map(tuple, expected.colors.tolist())) >= {(188, 0, 0), (0, 188, 0)}
    assert np.abs(found.colors.astype(int) - expected.colors).max() <= 1


def test_quantised_positions():
    mesh = load_mesh(CASES / "quant.glb")
    assert mesh.bounds.tolist() == [[0, 0, 0], [2, 2, 0]]


@pytest.mark.parametrize("name", ["textrans.glb", "textransReq.glb"])
def test_transformed_texture_coordinates(name):
    mesh, plain = load_mesh(CASES / name), load_mesh(CASES / "float.glb")
    gltf = np.stack([plain.uv[:, 0], 1 - plain.uv[:, 1]], axis=1) * 0.5 + [0.5, 0]
    assert np.allclose(mesh.uv, np.stack([gltf[:, 0], 1 - gltf[:, 1]], axis=1), atol=1e-6)


@pytest.mark.parametrize(("number", "wrap"), [(10497, "repeat"), (33071, "clamp"), (33648, "mirror")])
def test_wrap_modes(number, wrap):
    mesh = load_mesh(CASES / f"wrap{number}.glb")
    assert mesh.materials[0].wrap == (wrap, wrap)
    assert mesh.uv.max() == 3


def test_fans(caplog):
    mesh = load_mesh(CASES / "fan.glb")
    assert len(mesh.faces) == 2
    assert area(mesh) == pytest.approx(1)
    both = load_mesh(CASES / "fan+tri.glb")
    assert sorted(both.corners[:, 0, 2].tolist()) == [0, 0, 1, 1]
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("name", "extension"), [("basisu.glb", "KHR_texture_basisu"), ("zeros_required.glb", "KHR_draco_mesh_compression")]
)
def test_required_extensions_that_are_not_read_are_refused_by_name(name, extension):
    with pytest.raises(DataError, match=f"requires {extension}, which is not supported; export the mesh without"):
        load_mesh(CASES / name)


# -- core glTF ---------------------------------------------------------------------------------------------------------


def area(mesh):
    first, second = mesh.corners[:, 1] - mesh.corners[:, 0], mesh.corners[:, 2] - mesh.corners[:, 0]
    return np.linalg.norm(np.cross(first, second), axis=1).sum() / 2


def test_strips_have_every_other_triangle_the_other_way_round(tmp_path):
    writer = Writer()
    points = np.array([[x // 2, x % 2, 0] for x in range(6)], np.float32)
    writer.save(tmp_path, meshes=[{"primitives": [{"attributes": {"POSITION": writer.accessor(points)}, "mode": 5}]}])
    mesh = load_mesh(tmp_path / "model.glb")
    assert len(mesh.faces) == 4
    turn = np.cross(mesh.corners[:, 1] - mesh.corners[:, 0], mesh.corners[:, 2] - mesh.corners[:, 0])[:, 2]
    assert np.allclose(turn, turn[0])
    assert area(mesh) == pytest.approx(2)


@pytest.mark.parametrize("base", [True, False])
def test_sparse_accessors(tmp_path, base):
    writer = Writer()
    rows, values = np.array([1, 3], np.uint8), np.array([[5, 6, 7], [8, 9, 1]], np.float32)
    sparse = {
        "count": 2,
        "indices": {"bufferView": writer.view(rows.tobytes()), "componentType": 5121},
        "values": {"bufferView": writer.view(values.tobytes())},
    }
    place = writer.accessor(SQUARE, sparse=sparse)
    if base:
        writer.tree["accessors"][place]["bufferView"] = writer.view(SQUARE.tobytes())
    primitive = {"attributes": {"POSITION": place}, "indices": writer.accessor(FACES)}
    mesh = load_mesh(writer.save(tmp_path, meshes=[{"primitives": [primitive]}]))
    expected = SQUARE.copy() if base else np.zeros((4, 3))
    expected[rows] = values
    assert np.array_equal(mesh.vertices, expected)


def test_interleaved_numbers(tmp_path):
    writer = Writer()
    rows = np.zeros(4, np.dtype([("position", "<3f4"), ("uv", "<2u2"), ("rest", "<u4")]))
    rows["position"], rows["uv"] = SQUARE, SQUARE[:, :2] * 65535
    view = writer.view(rows.tobytes(), byteStride=rows.itemsize)
    writer.tree["accessors"] += [
        {"bufferView": view, "componentType": 5126, "count": 4, "type": "VEC3"},
        {"bufferView": view, "byteOffset": 12, "componentType": 5123, "normalized": True, "count": 4, "type": "VEC2"},
    ]
    primitive = {"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "indices": writer.accessor(FACES), "material": 0}
    path = writer.save(tmp_path, meshes=[{"primitives": [primitive]}], **textured(writer))
    mesh = load_mesh(path)
    assert np.array_equal(mesh.vertices, SQUARE)
    assert np.array_equal(mesh.uv, np.stack([SQUARE[:, 0], 1 - SQUARE[:, 1]], axis=1))


def textured(writer, content=None, texture=None, **info):
    view = writer.view(png() if content is None else content)
    return {
        "images": [{"bufferView": view, "mimeType": "image/png"}],
        "textures": [{"source": 0} if texture is None else texture],
        "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0, **info}}}],
    }


@pytest.mark.parametrize("of", ["mesh", "node"])
def test_morph_targets_in_their_default_weights(tmp_path, of):
    writer = Writer()
    moves = DICE.normal(size=(3, 4, 3)).astype(np.float32)
    turned = DICE.normal(size=(4, 3)).astype(np.float32)
    normals = np.tile(np.array([0, 0, 1], np.float32), (4, 1))
    targets = [{"POSITION": writer.accessor(one)} for one in moves]
    targets[2]["NORMAL"] = writer.accessor(turned)
    mesh = {"primitives": [{**writer.square(NORMAL=writer.accessor(normals)), "targets": targets}]}
    node = {"mesh": 0}
    (mesh if of == "mesh" else node)["weights"] = [0.5, 0, -2]
    if of == "node":
        mesh["weights"] = [9, 9, 9]
    found = load_mesh(writer.save(tmp_path, meshes=[mesh], nodes=[node]))
    assert np.allclose(found.vertices, SQUARE + 0.5 * moves[0] - 2 * moves[2], atol=1e-6)
    expected = normals - 2 * turned
    assert np.allclose(found.normals, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def trs(number):
    turn = Rotation.random(rng=number)
    move, scale = DICE.normal(size=3), DICE.uniform(0.5, 2, 3)
    matrix = np.eye(4)
    matrix[:3, :3] = turn.as_matrix() * scale
    matrix[:3, 3] = move
    return {"translation": move.tolist(), "rotation": turn.as_quat().tolist(), "scale": scale.tolist()}, matrix


@pytest.mark.parametrize("kind", ["f", "B"])
def test_skins_in_their_default_pose(tmp_path, kind):
    writer = Writer()
    (upper, above), (lower, below), (away, _) = trs(1), trs(2), trs(3)
    bind = np.stack([np.linalg.inv(trs(number)[1]) for number in (4, 5)])
    weights = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0.2, 0.8, 0, 0], [0.6, 0.4, 0, 0]])
    stored = weights.astype(np.float32) if kind == "f" else (weights * 255).astype(np.uint8)
    primitive = writer.square(
        JOINTS_0=writer.accessor(np.tile(np.array([0, 1, 0, 0], np.uint8), (4, 1))),
        WEIGHTS_0=writer.accessor(stored, **({} if kind == "f" else {"normalized": True})),
    )
    inverse = writer.accessor(bind.transpose(0, 2, 1).reshape(2, 16).astype(np.float32))
    path = writer.save(
        tmp_path,
        meshes=[{"primitives": [primitive]}],
        nodes=[{"mesh": 0, "skin": 0, **away}, {"children": [2], **upper}, lower],
        skins=[{"joints": [1, 2], "inverseBindMatrices": inverse}],
        scenes=[{"nodes": [0, 1]}],
    )
    joints = [above @ bind[0], above @ below @ bind[1]]
    at = np.concatenate([SQUARE, np.ones((4, 1))], axis=1)
    expected = sum(weights[:, [number]] * (at @ joints[number].T)[:, :3] for number in range(2))
    assert np.allclose(load_mesh(path).vertices, expected, atol=1e-5)  # and the node of the mesh counts for nothing


def test_nodes_stand_below_nodes(tmp_path):
    writer = Writer()
    (upper, above), (lower, below) = trs(1), trs(2)
    path = writer.save(
        tmp_path,
        meshes=[{"primitives": [writer.square()]}],
        nodes=[{"mesh": 0, **lower}, {"matrix": above.T.ravel().tolist(), "children": [0]}, {"mesh": 0}],
        scenes=[{"nodes": [2]}, {"nodes": [1]}],
        scene=1,
    )
    found = load_mesh(path)
    expected = (np.concatenate([SQUARE, np.ones((4, 1))], axis=1) @ (above @ below).T)[:, :3]
    assert np.allclose(found.vertices, expected, atol=1e-6)
    assert upper
    for nodes in ([{"mesh": 0, "children": [0]}], [{"children": [1]}, {"mesh": 0, "children": [0]}]):
        looped = Writer()
        primitive = looped.square()
        path = looped.save(tmp_path, meshes=[{"primitives": [primitive]}], nodes=nodes, scenes=[{"nodes": [0]}])
        with pytest.raises(DataError, match="with two parents, or as its own descendant"):
            load_mesh(path)


def test_points_and_lines_beside_triangles_are_said(tmp_path, caplog):
    writer = Writer()
    primitives = [writer.square(), {**writer.square(), "mode": 1}]
    assert len(load_mesh(writer.save(tmp_path, meshes=[{"primitives": primitives}])).faces) == 2
    assert "points and lines are not rendered" in caplog.text
    writer.tree["meshes"][0]["primitives"].pop(0)
    with pytest.raises(DataError, match="no triangles: points and lines are not rendered") as error:
        load_mesh(writer.save(tmp_path))
    assert "again" not in str(error.value)


def test_a_material_that_is_not_there_is_white(tmp_path):
    writer = Writer()
    assert load_mesh(writer.save(tmp_path, meshes=[{"primitives": [writer.square()]}])).materials[0].color == (255,) * 3


# -- extensions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, np.pi / 2, 0.3])
def test_a_texture_turned(tmp_path, angle):
    """By pi/2, an offset of (0, 1) and a scale of 1/2: the lower left quarter, the example of the extension's text."""
    writer = Writer()
    uv = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    info = {"offset": [0, 1], "scale": [0.5, 0.5], "rotation": angle, "texCoord": 3}
    told = textured(writer, extensions={"KHR_texture_transform": info}, texCoord=0)
    primitive = {**writer.square(TEXCOORD_3=writer.accessor(uv)), "material": 0}
    mesh = load_mesh(writer.save(tmp_path, meshes=[{"primitives": [primitive]}], **told))
    seen = np.stack([mesh.uv[:, 0], 1 - mesh.uv[:, 1]], axis=1)  # as glTF counts
    if angle == np.pi / 2:
        assert np.allclose(seen.min(axis=0), [0, 0.5], atol=1e-6)
        assert np.allclose(seen.max(axis=0), [0.5, 1], atol=1e-6)
    # counter-clockwise where v points downwards
    turned = Rotation.from_euler("z", -angle).as_matrix()[:2, :2]
    assert np.allclose(seen, (uv * 0.5) @ turned.T + [0, 1], atol=1e-6)


def test_instances(tmp_path):
    writer = Writer()
    told, node = trs(7)
    turns = Rotation.random(3, rng=1)
    moves, scales = DICE.normal(size=(3, 3)).astype(np.float32), DICE.uniform(0.5, 2, (3, 3)).astype(np.float32)
    attributes = {
        "TRANSLATION": writer.accessor(moves),
        "ROTATION": writer.accessor(turns.as_quat().astype(np.float32)),
        "SCALE": writer.accessor(scales),
    }
    path = writer.save(
        tmp_path,
        meshes=[{"primitives": [writer.square()]}],
        nodes=[{"mesh": 0, **told, "extensions": {"EXT_mesh_gpu_instancing": {"attributes": attributes}}}],
        extensionsRequired=["EXT_mesh_gpu_instancing"],
        extensionsUsed=["EXT_mesh_gpu_instancing"],
    )
    own = [turn.apply(SQUARE * scale) + move for turn, scale, move in zip(turns, scales, moves, strict=True)]
    expected = np.concatenate(own) @ node[:3, :3].T + node[:3, 3]
    assert np.allclose(load_mesh(path).vertices, expected, atol=1e-5)


def test_hidden_nodes(tmp_path):
    writer = Writer()
    hidden = {"extensions": {"KHR_node_visibility": {"visible": False}}}
    path = writer.save(
        tmp_path,
        meshes=[{"primitives": [writer.square()]}],
        nodes=[{"children": [1], **hidden}, {"mesh": 0, "translation": [5, 0, 0]}, {"mesh": 0}],
        scenes=[{"nodes": [0, 2]}],
    )
    assert load_mesh(path).bounds[1].tolist() == [1, 1, 0]


def test_specular_and_glossy_materials_have_a_diffuse_color(tmp_path):
    writer = Writer()
    told = textured(writer)
    glossy = {"diffuseFactor": [1, 0.5, 0, 1], "diffuseTexture": {"index": 0}}
    told["materials"] = [{"extensions": {"KHR_materials_pbrSpecularGlossiness": glossy}}]
    primitive = {**writer.square(TEXCOORD_0=writer.accessor(SQUARE[:, :2].copy())), "material": 0}
    mesh = load_mesh(writer.save(tmp_path, meshes=[{"primitives": [primitive]}], **told))
    assert mesh.materials[0].color == (255, 188, 0)
    assert np.array_equal(mesh.materials[0].texture, TEXTURE)


@pytest.mark.parametrize("extension", ["EXT_texture_webp", "KHR_texture_basisu"])
def test_textures_of_other_formats(tmp_path, caplog, extension):
    """Of WebP the image of the extension, of basisu the other one; with none, a sentence that names it."""
    writer = Writer()
    even = np.full((4, 4, 3), 99, np.uint8)
    told = textured(writer, texture={"source": 0, "extensions": {extension: {"source": 1}}})
    content = png(even, "WEBP") if extension == "EXT_texture_webp" else b"\xabKTX 20\xbb"
    told["images"].append({"bufferView": writer.view(content), "mimeType": "image/webp"})
    primitive = {**writer.square(TEXCOORD_0=writer.accessor(SQUARE[:, :2].copy())), "material": 0}
    mesh = load_mesh(writer.save(tmp_path, meshes=[{"primitives": [primitive]}], extensionsUsed=[extension], **told))
    expected = even if extension == "EXT_texture_webp" else TEXTURE
    assert np.abs(mesh.materials[0].texture.astype(int) - expected).max() <= 2
    assert caplog.text == ""
    if extension == "KHR_texture_basisu":
        del writer.tree["textures"][0]["source"]
        assert load_mesh(writer.save(tmp_path)).materials[0].texture is None
        assert "a texture is ignored because KHR_texture_basisu is not supported" in caplog.text


COMPRESSED = ["KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression", "VENDOR_unheard_of"]


@pytest.mark.parametrize("extension", COMPRESSED)
def test_extensions_are_read_past_refused_or_named(tmp_path, caplog, extension):
    writer = Writer()
    primitive = writer.square()
    primitive["extensions"] = {extension: {}}
    path = writer.save(tmp_path, meshes=[{"primitives": [primitive]}], extensionsUsed=[extension])
    assert np.array_equal(load_mesh(path).vertices, SQUARE)  # the file holds all numbers beside
    assert (extension in caplog.text) == (extension == "VENDOR_unheard_of")
    writer.save(tmp_path, extensionsRequired=[extension])
    with pytest.raises(DataError, match=f"requires {extension}, which is not supported"):
        load_mesh(path)
    writer.tree["extensionsRequired"] = []
    del writer.tree["accessors"][0]["bufferView"]
    writer.save(tmp_path)
    with pytest.raises(DataError, match=f"positions or indices of a primitive require the extension {extension}"):
        load_mesh(path)


def test_a_buffer_that_only_an_extension_fills_is_refused(tmp_path):
    writer = Writer()
    path = writer.save(tmp_path, meshes=[{"primitives": [writer.square()]}])
    text = writer.tree
    text["buffers"] = [{"byteLength": 76, "extensions": {"EXT_meshopt_compression": {"fallback": True}}}]
    path = tmp_path / "model.gltf"
    path.write_text(json.dumps(text))
    with pytest.raises(DataError, match="the data of buffer 0 requires the extension EXT_meshopt_compression"):
        load_mesh(path)


def test_what_is_not_rendered_is_named(tmp_path, caplog):
    writer = Writer()
    told = {"materials": [{"extensions": {"KHR_materials_clearcoat": {}}, "normalTexture": {"index": 0}}]}
    path = writer.save(
        tmp_path,
        meshes=[{"primitives": [{**writer.square(), "material": 0}]}],
        extensionsUsed=["KHR_materials_clearcoat", "KHR_lights_punctual", "KHR_materials_variants"],
        extensionsRequired=["KHR_lights_punctual"],
        **told,
    )
    load_mesh(path)
    assert "not rendered: KHR_lights_punctual, KHR_materials_clearcoat" in caplog.text
    assert "normalTexture" in caplog.text


@pytest.mark.parametrize("version", ["1.0", "3.0", "2.1"])
def test_other_versions_are_refused(tmp_path, version):
    path = tmp_path / "a.gltf"
    path.write_text(json.dumps({"asset": {"version": "2.0" if version == "2.1" else version, "minVersion": version}}))
    with pytest.raises(DataError, match=rf"version {version} of glTF, but only 2\.0 is supported"):
        load_mesh(path)


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.long("fuzzing")
def test_a_small_file_does_not_show_a_hundred_million_triangles(tmp_path):
    writer = Writer()
    many = np.zeros(120_000, np.uint16)
    primitive = {"attributes": {"POSITION": writer.accessor(SQUARE)}, "indices": writer.accessor(many)}
    nodes = [{"mesh": 0} for _ in range(3000)]
    with pytest.raises(DataError, match="repeats its meshes"):
        load_mesh(writer.save(tmp_path, meshes=[{"primitives": [primitive]}], nodes=nodes))


@pytest.mark.parametrize("where", ["accessor", "sparse"])
def test_counts_are_checked_before_memory_is_taken(tmp_path, where):
    writer = Writer()
    primitive = writer.square()
    told = writer.tree["accessors"][0]
    told["count"] = 10**12
    if where == "sparse":
        del told["bufferView"]
        indices = {"bufferView": 0, "componentType": 5121}
        told["sparse"] = {"count": 1, "indices": indices, "values": {"bufferView": 0}}
    with pytest.raises(DataError, match="elements"):
        load_mesh(writer.save(tmp_path, meshes=[{"primitives": [primitive]}]))


def rich(folder):
    """A file of many features."""
    writer = Writer()
    told = textured(writer, extensions={"KHR_texture_transform": {"offset": [0.5, 0]}})
    told["samplers"] = [{"wrapS": 33071}]
    told["textures"][0]["sampler"] = 0
    rows = {"bufferView": writer.view(b"\1\2"), "componentType": 5121}
    sparse = {"count": 2, "indices": rows, "values": {"bufferView": writer.view(SQUARE[:2].tobytes())}}
    moved = writer.accessor(SQUARE, sparse=sparse)
    primitive = writer.square(
        TEXCOORD_0=writer.accessor((SQUARE[:, :2] * 255).astype(np.uint8), normalized=True),
        JOINTS_0=writer.accessor(np.zeros((4, 4), np.uint8)),
        WEIGHTS_0=writer.accessor(np.ones((4, 4), np.float32)),
    )
    primitive |= {"targets": [{"POSITION": moved}], "material": 0}
    instanced = {"EXT_mesh_gpu_instancing": {"attributes": {"TRANSLATION": writer.accessor(SQUARE)}}}
    writer.save(
        folder,
        meshes=[{"primitives": [primitive, {**primitive, "mode": 5}], "weights": [0.5]}],
        nodes=[{"mesh": 0, "skin": 0}, {"mesh": 0, "extensions": instanced, "rotation": [0, 0, 0, 1]}],
        skins=[{"joints": [1]}],
        **told,
    )
    return writer


@pytest.mark.long("fuzzing")
def test_fuzzing_of_bytes(tmp_path):
    content = rich(tmp_path).glb()
    path = tmp_path / "model.glb"

    def read(changed):
        path.write_bytes(changed)
        load_mesh(path)

    read(content)
    assert survives(content, read, 150, head=2500) > 50


@pytest.mark.long("fuzzing")
def test_fuzzing_of_the_json(tmp_path):
    """Every value is replaced by values of other types and sizes."""
    writer = rich(tmp_path)
    path = tmp_path / "model.glb"
    places = []

    def walk(value, place):
        places.append(place)
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, one in inner:
            walk(one, (*place, name))

    walk(writer.tree, ())
    refused, whole = 0, json.dumps(writer.tree)
    for place in places[1:]:
        for value in (None, -1, 1e30, 2**70, "x", [[]], 7):
            writer.tree = json.loads(whole)
            at = writer.tree
            for name in place[:-1]:
                at = at[name]
            at[place[-1]] = value
            path.write_bytes(writer.glb())
            try:
                load_mesh(path)
            except DataError:
                refused += 1
    assert refused > 200


def test_a_file_that_ends_in_its_head_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "a.glb").write_bytes(b"glTFbroken")
    with pytest.raises(DataError, match="it is truncated: it has 10 of the 12 bytes"):
        load_mesh(tmp_path / "a.glb")
