"""Render the substitute into one array of images, model by model, labelled as what it is."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from setsup.arrays import Pixels
from setsup.checks import check_integer
from setsup.datasets.adapters.substitutes import RECORD, settle_record
from setsup.errors import DataError, imported
from setsup.files import disk_errors, locked, need_space, written
from setsup.files.expand_user import expanded
from setsup.files.mapped import new_array
from setsup.jobs import Unit, check_processes, run
from setsup_papers.abc.pose.datasets.abc_pose.cropping import box_margin
from setsup_papers.abc.pose.datasets.abc_pose.factors import CATEGORIES
from setsup_papers.abc.pose.datasets.abc_pose_procedural.models import draw_model, mesh_model
from setsup_papers.abc.pose.datasets.abc_pose_procedural.views import Poses, fit_camera, real_poses, rendered_poses

__all__ = [
    "BACKGROUNDS",
    "IMAGES",
    "LAST",
    "POSES",
    "Block",
    "Counts",
    "first_rows",
    "list_blocks",
    "mesh_files",
    "write_views",
]

IMAGES, POSES, BACKGROUNDS, LAST = "images.npy", "poses.npy", "backgrounds.npy", "blocks.json"
_DONE = ".rendered"
_VERSION = 1
_TITLE = (
    "Substitute for the images of ABC's pose experiment: made-up cars and chairs, rendered by setsup; no photograph"
)
_POOL = 512  # images of the pool of backgrounds, at most
_REAL_EACH, _TEST_EACH = 10, 20  # images of a model of the real domain
_FIRST = {
    ("rendering", "train"): 0,
    ("rendering", "codebook"): 10_000,
    ("real", "train"): 20_000,
    ("real", "test"): 30_000,
}
"""Numbers of the first models, apart, so that no model is in two parts, whatever their sizes."""
_MESHES = ".obj", ".ply", ".off", ".stl", ".glb", ".gltf"
_MOST = 9_999


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is rendered of each category."""

    models: int
    codebook: int
    views: int
    real: int
    tests: int
    size: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in asdict(self).items():
            check_integer(value, name, DataError, 16 if name == "size" else 1, 1024 if name == "size" else _MOST)


@dataclass(frozen=True, slots=True)
class Block:
    """Images of one model, one after the other: `number` is the model's, `mesh` a file of the user's own."""

    category: str
    source: str
    split: str
    number: int
    images: int
    mesh: str | None = None

    @property
    def title(self) -> str:
        """Name of the model; files of one name in different folders are told apart by the number."""
        if self.mesh is None:
            return f"{self.category} {self.number}"
        return f"{self.category} {Path(self.mesh).stem} ({self.number})"


def first_rows(blocks: Sequence[Block]) -> list[int]:
    """Row of the first image of each block."""
    starts: list[int] = np.cumsum([0, *(block.images for block in blocks)])[:-1].tolist()
    return starts


def list_blocks(counts: Counts, meshes: Mapping[str, Sequence[str]]) -> list[Block]:
    """All blocks in the order of their rows; meshes of the user are further training models."""
    blocks: list[Block] = []
    for category in CATEGORIES:
        sizes = {
            ("rendering", "train"): [counts.views] * counts.models,
            ("real", "train"): _cut(counts.real, _REAL_EACH),
            ("rendering", "codebook"): [counts.views] * counts.codebook,
            ("real", "test"): _cut(counts.tests, _TEST_EACH),
        }
        for (source, split), images in sizes.items():
            first = _FIRST[source, split]
            blocks += [Block(category, source, split, first + index, count) for index, count in enumerate(images)]
            if (source, split) == ("rendering", "train"):
                named = enumerate(meshes.get(category, ()))
                blocks += [
                    Block(category, source, split, first + counts.models + index, counts.views, name)
                    for index, name in named
                ]
    return blocks


def _cut(whole: int, size: int) -> list[int]:
    return [size] * (whole // size) + ([whole % size] if whole % size else [])


def mesh_files(folder: Path | str | None, what: str) -> list[Path]:
    """Mesh files of a user's folder, sorted."""
    if folder is None:
        return []
    expanded_folder = expanded(folder)
    if not expanded_folder.is_dir():
        why = "a file" if expanded_folder.exists() else "not there"
        raise DataError(f"{folder} is {why}; set {what} to the folder of your meshes ({', '.join(_MESHES)})")
    meshes = sorted(path for path in expanded_folder.rglob("*") if path.suffix.lower() in _MESHES)
    if not meshes:
        raise DataError(f"{folder} contains no meshes ({', '.join(_MESHES)}); set {what} to another folder")
    return [path.absolute() for path in meshes]


def write_views(
    folder: Path, counts: Counts, meshes: Mapping[str, Sequence[Path]], *, seed: int = 0, processes: int = 1
) -> None:
    """Render the blocks that the files lack; the last file is written when all are there."""
    check_integer(seed, "seed", DataError, 0)
    check_processes(processes)
    imported("skimage.data", "train")  # looked for first: the backgrounds, made last, need it
    named = {category: [str(path) for path in paths] for category, paths in meshes.items() if paths}
    for category, paths in named.items():
        if counts.models + len(paths) > _MOST:
            raise DataError(
                f"too many models for one category: {len(paths):,} meshes of {category}s and {counts.models:,} "
                f"models, but at most {_MOST:,} in all; use fewer meshes or models"
            )
    with locked(folder / RECORD):
        digests = {
            path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for paths in named.values() for path in paths
        }
        if not (folder / LAST).exists():
            for path in digests:  # before the record: once it is written, only the same meshes are accepted
                mesh_model(Path(path))
        settle_record(folder, _TITLE, {"version": _VERSION, "seed": seed, **asdict(counts), "meshes": digests})
        if not (folder / LAST).exists():
            _render(folder, list_blocks(counts, named), seed, counts.size, processes)


def _render(folder: Path, blocks: list[Block], seed: int, size: int, processes: int) -> None:
    """Render the blocks that are not rendered yet, and finish the files."""
    images, done = folder / f".{IMAGES}", folder / _DONE
    side = size + 2 * box_margin(size)
    shape = (sum(block.images for block in blocks), side, side, 4)
    need_space(folder, 0 if images.exists() else int(np.prod(shape)), "the images")
    _begin(images, shape)
    with disk_errors(done):
        done.mkdir(exist_ok=True)
    units = [
        Unit(f"{block.split} {block.category} {block.number}", (block, start), block.images)
        for block, start in zip(blocks, first_rows(blocks), strict=True)
        if not (done / _name(block)).exists()
    ]
    work = partial(_write_block, folder, seed, size)
    run(work, units, processes=processes, folder=folder, what="rendering cars and chairs", counted="images")
    _finish(folder, blocks, seed, size)


def _name(block: Block) -> str:
    return f"{block.category}-{block.number}"


def _begin(path: Path, shape: tuple[int, ...]) -> None:
    """Create the array at its full length; what is there stays."""
    if not path.exists():
        with written(path) as fresh:
            new_array(fresh, np.uint8, shape).flush()


def _write_block(folder: Path, seed: int, size: int, work: tuple[Block, int]) -> None:
    block, start = work
    path = folder / f".{IMAGES}"
    images = render_block(block, seed, size)
    with disk_errors(path):
        array = np.lib.format.open_memmap(path, "r+")
        array[start : start + block.images] = images
        array.flush()
    (folder / _DONE / _name(block)).touch()


def render_block(block: Block, seed: int, size: int) -> Pixels:
    """Images of a block, (n, side, side, 4) uint8."""
    from setsup.scenes.renderers import renderer
    from setsup_papers.abc.pose.datasets.abc_pose_procedural.photographs import photograph, photograph_key
    from setsup_papers.abc.pose.datasets.abc_pose_procedural.shading import rendering

    model = draw_model(seed, block.category, block.number) if block.mesh is None else mesh_model(Path(block.mesh))
    margin = box_margin(size)
    images = np.empty((block.images, size + 2 * margin, size + 2 * margin, 4), np.uint8)
    engine = renderer("embree")
    engine.load(model.scene)
    poses = zip(*(column.tolist() for column in _draw_poses(block, seed)), strict=True)
    for number, (image, pose) in enumerate(zip(images, poses, strict=True)):
        camera = fit_camera(model, pose, 2 * size, 2 * margin)
        frame = engine.render(camera)
        if block.source == "rendering":
            image[:] = rendering(model, frame, camera)
        else:
            key = photograph_key(seed, block.category, block.number, number)
            image[:] = photograph(model, frame, camera, key, indoors=block.category == "chair")
    engine.close()
    return images


def _draw_poses(block: Block, seed: int) -> Poses:
    poses = rendered_poses if block.source == "rendering" else real_poses
    return poses(seed, block.category, block.number, block.images)


def _finish(folder: Path, blocks: list[Block], seed: int, size: int) -> None:
    """Write the poses and the pool of backgrounds, and give the images their name."""
    from setsup_papers.abc.pose.datasets.abc_pose_procedural.textures import pool

    poses = [np.stack(_draw_poses(block, seed)[:3], axis=1).astype(np.float32) for block in blocks]
    all_poses = np.concatenate(poses)
    for name, array in ((POSES, all_poses), (BACKGROUNDS, pool(seed, min(_POOL, len(all_poses)), 2 * size))):
        with written(folder / name) as fresh, fresh.open("wb") as file:
            np.save(file, array)
    with disk_errors(folder):
        if (folder / f".{IMAGES}").exists():
            (folder / f".{IMAGES}").rename(folder / IMAGES)
        for marker in (folder / _DONE).iterdir():
            marker.unlink()
        (folder / _DONE).rmdir()
    with written(folder / LAST) as fresh:
        fresh.write_text(json.dumps([asdict(block) for block in blocks]) + "\n", "utf-8")
