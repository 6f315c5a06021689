"""The loader with ``resize=``: each image from its original, the same for any workers, and all modalities with it."""

import itertools
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import setsup
from setsup import random
from setsup.datasets import BaseDataset, Modality
from setsup.errors import DataError, SetsupError
from setsup.factors import FactorTable
from setsup.loading.resizing import Letterbox, RandomResizedCrop, Resize, ShortSide

SIZES = [(40, 60), (61, 33), (1, 1), (5, 200), (90, 90), (300, 2), (37, 41), (64, 48)]

ANY_SIZE = {"image": Modality((None, None, 3), "uint8", color="srgb")}


def photograph(height: int, width: int, seed: int = 0, channels: int = 3) -> npt.NDArray[np.uint8]:
    """Smooth waves with some noise."""
    noise = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width] / 17
    waves = [np.sin(x * (k + 1) + seed) * np.cos(y * (k + 2)) for k in range(channels)]
    pixels = 128 + 90 * np.stack(waves, axis=-1) + noise.normal(0, 6, (height, width, channels))
    return pixels.clip(0, 255).astype(np.uint8)


def write_photographs(folder: Path) -> None:
    lines = ["path,subject"]
    for number, (height, width) in enumerate(SIZES):
        kind = "jpg" if number % 2 else "png"
        path = folder / f"{number}.{kind}"
        Image.fromarray(photograph(height, width, number)).save(path, quality=95)
        lines.append(f"{path.name},{'ab'[number % 2]}")
    (folder / "photos.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photographs")
    write_photographs(folder)
    return folder


@pytest.fixture
def photos(folder: Path) -> Any:
    return setsup.open_table(folder / "photos.csv")


def sampler_of(dataset: Any) -> setsup.SetSampler:
    return setsup.SetSampler(dataset.factors, inactive=[], size=5, sets=2, on_small_group="replace")


def batches_of(dataset: Any, resize: Resize, count: int = 3, **options: Any) -> list[dict[str, Any]]:
    loader = setsup.loader(dataset, sampler_of(dataset), resize=resize, **{"workers": 0, "to": "numpy", **options})
    return [
        {name: value if isinstance(value, dict) else np.array(value) for name, value in batch.items()}
        for batch in itertools.islice(iter(loader), count)
    ]


def decoded(folder: Path, row: int) -> Image.Image:
    with Image.open(folder / f"{row}.{'jpg' if row % 2 else 'png'}") as image:
        return image.convert("RGB")


def numbers_of(resize: Resize, step: int, at: tuple[int, int], copy: int = 0) -> list[float]:
    """Random numbers by the definition of the key: (seed, stream, step, set, position, copy, number)."""
    key = random.stream_key(resize.seed, str(resize.stream))
    for word in (step, *at, copy):
        key = random.fold_integers(key, word)
    return [(random.fold_integers(key, number) >> 11) * 2.0**-53 for number in range(resize.draws)]


# -- pixels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_results_are_crops_of_the_originals_resized_by_pillow(folder: Path, photos: Any, interpolation: Any) -> None:
    crop = RandomResizedCrop(24, interpolation=interpolation, seed=3)
    method = Image.Resampling.BILINEAR if interpolation == "bilinear" else Image.Resampling.BICUBIC
    for step, batch in enumerate(batches_of(photos, crop)):
        assert batch["image"].shape == (2, 5, 24, 24, 3)
        for at in np.ndindex(2, 5):
            image = decoded(folder, int(batch["indices"][at]))
            left, top, wide, tall = crop.place(numbers_of(crop, step, at), image.height, image.width).box
            whole = image.crop((int(left), int(top), int(left + wide), int(top + tall)))
            np.testing.assert_array_equal(batch["image"][at], np.asarray(whole.resize((24, 24), method)))


def triangle(length: int, begin: float, extent: float, result: int) -> npt.NDArray[np.float64]:
    """Weights (result, length) of an antialiased bilinear resize of a part of one axis, by the formula."""
    factor = extent / result
    reach = max(factor, 1.0)
    centres = begin + (np.arange(result) + 0.5) * factor
    weights = np.maximum(0, 1 - np.abs(np.arange(length) + 0.5 - centres[:, None]) / reach)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def test_results_are_those_of_the_formula_in_float64_to_a_level(folder: Path, photos: Any) -> None:
    for resize in (
        RandomResizedCrop(24),
        ShortSide(24, short=30, position="random"),
        ShortSide((16, 40)),
        Letterbox(24),
    ):
        for step, batch in enumerate(batches_of(photos, resize, 2)):
            for at in np.ndindex(2, 5):
                pixels = np.asarray(decoded(folder, int(batch["indices"][at])), np.float64)
                place = resize.place(numbers_of(resize, step, at), *pixels.shape[:2])
                left, top, wide, tall = place.box
                x0, y0 = int(left + 1e-9), int(top + 1e-9)
                window = pixels[y0 : int(np.ceil(top + tall - 1e-9)), x0 : int(np.ceil(left + wide - 1e-9))]
                down = triangle(window.shape[0], top - y0, tall, place.rows)
                across = triangle(window.shape[1], left - x0, wide, place.columns)
                expected = np.zeros((*resize.shape, 3))
                region = np.einsum("ij,jkc,lk->ilc", down, window, across)
                expected[place.row : place.row + place.rows, place.column : place.column + place.columns] = region
                assert np.abs(batch["image"][at] - expected).max() <= 1.01


def test_enlarged_results_are_opencvs_to_a_level(folder: Path, photos: Any) -> None:
    cv2 = pytest.importorskip("cv2")
    crop = RandomResizedCrop(96, scale=(0.3, 0.6))
    compared = 0
    for step, batch in enumerate(batches_of(photos, crop)):
        for at in np.ndindex(2, 5):
            pixels = np.asarray(decoded(folder, int(batch["indices"][at])))
            left, top, wide, tall = map(int, crop.place(numbers_of(crop, step, at), *pixels.shape[:2]).box)
            if max(wide, tall) <= 96:
                window = np.ascontiguousarray(pixels[top : top + tall, left : left + wide])
                expected = cv2.resize(window, (96, 96), interpolation=cv2.INTER_LINEAR)
                assert np.abs(batch["image"][at].astype(int) - expected).max() <= 1
                compared += 1
    assert compared > 10


def test_a_random_crop_sees_what_size_cuts_off(tmp_path: Path) -> None:
    wide = np.zeros((40, 120, 3), np.uint8)
    wide[:, :34], wide[:, -34:] = 255, 255  # white where the central square is not
    for name in ("a", "b"):
        Image.fromarray(wide).save(tmp_path / f"{name}.png")
    (tmp_path / "photos.csv").write_text("path,subject\na.png,a\nb.png,b\n")
    photos = setsup.open_table(tmp_path / "photos.csv")
    assert not setsup.open_table(tmp_path / "photos.csv", size=(16, 16)).fetch([0])["image"].any()
    seen = np.concatenate(
        [batch["image"].reshape(-1, 16, 16, 3) for batch in batches_of(photos, RandomResizedCrop(16), 9)]
    )
    assert seen.any(axis=(1, 2, 3)).mean() > 0.5


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("workers", ["thread", 1, 2, 5])
def test_batches_are_the_same_for_any_number_of_workers(photos: Any, workers: Any) -> None:
    crop = RandomResizedCrop(16, copies=2, seed=1)
    expected = batches_of(photos, crop, 7)
    for found, wanted in zip(batches_of(photos, crop, 7, workers=workers), expected, strict=True):
        np.testing.assert_array_equal(found["image"], wanted["image"])
        np.testing.assert_array_equal(found["homographies"]["image"], wanted["homographies"]["image"])


def test_batches_are_the_same_after_a_resume_for_any_world_and_batch(photos: Any) -> None:
    crop = RandomResizedCrop(16, seed=1)
    whole = batches_of(photos, crop, 6)
    for start, batch in ((3, whole[3]), (5, whole[5])):
        np.testing.assert_array_equal(batches_of(photos, crop, 1, start=start)[0]["image"], batch["image"])
    for rank in (0, 1):
        for found, wanted in zip(batches_of(photos, crop, 3, rank=rank, world=2), whole[rank::2], strict=True):
            np.testing.assert_array_equal(found["image"], wanted["image"])
    # an image depends neither on its neighbours nor on how many copies are made
    alone = setsup.SetSampler(photos.factors, inactive=[], size=1, sets=2, on_small_group="replace")
    for batch in itertools.islice(setsup.loader(photos, alone, resize=crop, workers=0, to="numpy"), 3):
        for number in (0, 1):
            [row], step = batch["indices"][number], batch["step"]
            single = photos.select([row])
            same = crop.place(numbers_of(crop, step, (number, 0)), *single.fetch([0])["image"].shape[1:3])
            matrix = batch["homographies"]["image"][number, 0]
            assert matrix[0, 0] == pytest.approx(16 / same.box[2])
    first = batches_of(photos, RandomResizedCrop(16, copies=3, seed=1), 2)
    for one, three in zip(whole, first, strict=False):
        np.testing.assert_array_equal(one["image"], three["image"][:, :, 0])
        assert (three["image"][:, :, 0] != three["image"][:, :, 1]).any()


def test_seeds_streams_and_copies_draw_different_crops(photos: Any) -> None:
    found = [
        batches_of(photos, resize, 1)[0]["homographies"]["image"]
        for resize in (
            RandomResizedCrop(16),
            RandomResizedCrop(16, seed=1),
            RandomResizedCrop(16, stream="other"),
            ShortSide(16, short=20, position="random"),
        )
    ]
    for one, two in itertools.combinations(found, 2):
        assert (one != two).any()


def test_canonical_rows_are_resized_with_numbers_of_their_own(photos: Any) -> None:
    crop = RandomResizedCrop(16)
    orbits = setsup.OrbitSampler(photos.factors, "subject", sets=2, size=3, canonical="first")
    batch = next(iter(setsup.loader(photos, orbits, resize=crop, workers=0, to="numpy")))
    assert batch["canonical_image"].shape == (2, 16, 16, 3)
    matrices = batch["homographies"]
    assert matrices["image"].shape == (2, 3, 3, 3)
    assert matrices["canonical_image"].shape == (2, 3, 3)
    assert (matrices["image"][:, 0] != matrices["canonical_image"]).any()


# -- sources -----------------------------------------------------------------------------------------------------------


def test_folders_archives_tables_shards_and_selections_give_the_same_batches(folder: Path, tmp_path: Path) -> None:
    photos = setsup.open_table(folder / "photos.csv")
    pairs = [(folder / f"{row}.{'jpg' if row % 2 else 'png'}", "ab"[row % 2]) for row in range(len(SIZES))]
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as packed, tarfile.open(tmp_path / "photos.tar", "w") as tar:
        for path, subject in pairs:
            packed.write(path, f"{subject}/{path.name}")
            tar.add(path, f"{subject}/{path.name}")
            (tmp_path / "photos" / subject).mkdir(parents=True, exist_ok=True)
            (tmp_path / "photos" / subject / path.name).write_bytes(path.read_bytes())
    order = sorted(range(len(SIZES)), key=lambda row: (row % 2, row))
    table = photos.select(order)
    crop = RandomResizedCrop(16, copies=2)
    expected = batches_of(table, crop)
    sources = {
        name: setsup.open(tmp_path / name, pattern="{subject}/{}", kind="images")
        for name in ("photos", "photos.zip", "photos.tar")
    }
    sources["shards"] = setsup.write_shards(table, tmp_path / "shards", format="png", per_shard=3)
    frame = pytest.importorskip("pandas").DataFrame(
        {"image": [pairs[row][0].read_bytes() for row in order], "subject": [pairs[row][1] for row in order]}
    )
    sources["bytes"] = setsup.from_pandas(frame, image="image")
    sources["parts"] = setsup.concat(table.select(range(3)), table.select(range(3, 8)))
    for name, source in sources.items():
        source = source.with_factors(table.factors)
        for found, wanted in zip(batches_of(source, crop), expected, strict=True):
            np.testing.assert_array_equal(found["image"], wanted["image"], err_msg=name)


def test_arrays_and_a_dataset_with_fetch_alone_are_resized_too(folder: Path, photos: Any) -> None:
    class Fetched(BaseDataset):
        """Images of several sizes, fetched one by one."""

        name = "fetched"
        factors = photos.factors
        modalities = ANY_SIZE

        def _read(self, name: str, rows: Any, out: Any) -> Any:
            return photos.fetch(rows)["image"]

    for found, wanted in zip(
        batches_of(Fetched(), RandomResizedCrop(16)), batches_of(photos, RandomResizedCrop(16)), strict=True
    ):
        np.testing.assert_array_equal(found["image"], wanted["image"])
    arrays = setsup.from_arrays(np.stack([photograph(30, 40, seed) for seed in range(6)]), {"row": list(range(6))})
    batch = batches_of(arrays, ShortSide(16), 1)[0]
    row = int(batch["indices"][0, 0])
    box = (5, 0, 35, 30)
    expected = Image.fromarray(photograph(30, 40, row)).crop(box).resize((16, 16), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(batch["image"][0, 0], np.asarray(expected))


def test_a_hugging_face_dataset_is_resized(folder: Path, photos: Any) -> None:
    datasets = pytest.importorskip("datasets")
    paths = [str(folder / f"{row}.{'jpg' if row % 2 else 'png'}") for row in range(len(SIZES))]
    features = datasets.Features({"image": datasets.Image(), "subject": datasets.Value("string")})
    rows = {"image": paths, "subject": ["ab"[row % 2] for row in range(len(SIZES))]}
    theirs = setsup.from_huggingface(datasets.Dataset.from_dict(rows, features=features))
    crop = RandomResizedCrop(16)
    np.testing.assert_array_equal(
        batches_of(theirs.with_factors(photos.factors), crop, 1)[0]["image"], batches_of(photos, crop, 1)[0]["image"]
    )


@pytest.mark.parametrize("kind", ["grey", "alpha", "palette", "cmyk"])
@pytest.mark.parametrize("end", ["png", "jpg", "tif"])
def test_all_modes_are_resized_as_they_are_read(tmp_path: Path, kind: str, end: str) -> None:
    rgb = Image.fromarray(photograph(30, 50))
    alpha = Image.fromarray(photograph(30, 50, channels=4), "RGBA")
    image = {"grey": rgb.convert("L"), "alpha": alpha, "palette": rgb.convert("P"), "cmyk": rgb.convert("CMYK")}[kind]
    if (kind, end) in {("alpha", "jpg"), ("palette", "jpg"), ("cmyk", "png")}:
        pytest.skip("the format has no such mode")
    for name in ("a", "b"):
        image.save(tmp_path / f"{name}.{end}")
    (tmp_path / "photos.csv").write_text(f"path,subject\na.{end},a\nb.{end},b\n")
    photos = setsup.open_table(tmp_path / "photos.csv")
    whole = photos.fetch([0])["image"][0]
    batch = batches_of(photos, ShortSide((15, 25)), 1)[0]["image"][0, 0]
    assert batch.shape == (15, 25, whole.shape[2])
    seen = Image.fromarray(whole[..., 0] if whole.shape[2] == 1 else whole)
    expected = np.asarray(seen.resize((25, 15), Image.Resampling.BILINEAR)).reshape(batch.shape)
    np.testing.assert_array_equal(batch, expected)


@pytest.mark.parametrize("kind", ["label", "depth"])
def test_images_of_more_than_eight_bits_are_numbers_by_their_kind(tmp_path: Path, kind: str) -> None:
    numbers = np.arange(30 * 50).reshape(30, 50)
    for name in ("a", "b"):
        if kind == "label":
            Image.fromarray((numbers * 40).astype(np.uint16)).save(tmp_path / f"{name}.png")
        else:
            Image.fromarray(1 + numbers.astype(np.float32)).save(tmp_path / f"{name}.tif")
    end = "png" if kind == "label" else "tif"
    (tmp_path / "maps.csv").write_text(f"path,subject\na.{end},a\nb.{end},b\n")
    maps = setsup.open_table(tmp_path / "maps.csv")
    dtype = "uint16" if kind == "label" else "float32"
    said = rf"cannot tell how to resize 'image' of maps, because it is {dtype} .* and not an 8-bit image; specify"
    with pytest.raises(SetsupError, match=said):
        setsup.loader(maps, sampler_of(maps), resize=ShortSide((10, 10)))
    found = batches_of(maps, ShortSide((10, 10), modalities={"image": kind}), 1)[0]["image"][0, 0]
    middles = np.arange(1, 30, 3)  # of each three pixels
    expected = numbers[np.ix_(middles, 10 + middles)]
    np.testing.assert_array_equal(found, expected * 40 if kind == "label" else 1 + expected)


# -- other modalities --------------------------------------------------------------------------------------------------


SCENE = {
    **ANY_SIZE,
    "objects": Modality((None, None), "int32"),
    "depth": Modality((None, None), "float32", unit="m"),
    "points": Modality((7, 2), "float32", unit="px"),
    "boxes": Modality((3, 4), "float32", unit="px"),
    "intrinsics": Modality((3, 3), "float64", unit="pixel"),
    "pose": Modality((4, 4), "float32"),
}
SCENE_SIZES = [(40, 60), (61, 33), (90, 90), (37, 41)]


class Scenes(BaseDataset):
    """Images of several sizes with numbers of objects, depth, points, boxes and a camera on the same pixels."""

    name = "scenes"
    cpu_bound = True
    factors = FactorTable.from_values({"scene": [0, 1, 2, 3]})
    modalities = SCENE

    def one(self, name: str, row: int) -> Any:
        height, width = SCENE_SIZES[row]
        noise = np.random.default_rng(row)
        if name == "image":
            return photograph(height, width, row)
        if name == "objects":
            return np.arange(height * width, dtype=np.int32).reshape(height, width)
        if name == "depth":
            depth = noise.uniform(1, 5, (height, width)).astype(np.float32)
            return np.where(noise.random((height, width)) < 0.05, np.float32(0), depth)
        if name == "points":
            return noise.uniform(-5, [width + 5, height + 5], (7, 2)).astype(np.float32)
        if name == "boxes":
            corners = noise.uniform(0, [width, height], (3, 2, 2))
            return np.sort(corners, axis=1).reshape(3, 4).astype(np.float32)
        if name == "intrinsics":
            return np.array([[50.0 + row, 0, width / 2], [0, 60.0, height / 3], [0, 0, 1]])
        return np.eye(4, dtype=np.float32) * (row + 1)

    def _read(self, name: str, rows: Any, out: Any) -> Any:
        return np.stack([self.one(name, row) for row in rows.tolist()])


KINDS = {"objects": "label", "depth": "depth", "points": "points", "boxes": "boxes", "pose": "unchanged"}


@pytest.mark.parametrize(
    "resize",
    [
        RandomResizedCrop(20, modalities=KINDS, copies=2),
        ShortSide((20, 30), short=34, position="random", modalities=KINDS),
        Letterbox((20, 30), modalities=KINDS, fill={"image": 0.5, "objects": -1}),
    ],
)
def test_modalities_follow_the_geometry_of_their_image(resize: Resize) -> None:
    scenes = Scenes()
    rows, columns = resize.shape
    for step, batch in enumerate(batches_of(scenes, resize)):
        for at in np.ndindex(2, 5, resize.copies or 1):
            where = at if resize.copies else at[:2]
            row = int(batch["indices"][at[:2]])
            height, width = SCENE_SIZES[row]
            place = resize.place(numbers_of(resize, step, at[:2], at[2]), height, width)
            matrix = batch["homographies"]["image"][where]
            # of each pixel of the result, the pixel of the original below its centre
            v, u = np.mgrid[place.row : place.row + place.rows, place.column : place.column + place.columns]
            inverse = np.linalg.inv(matrix)
            x, y = inverse[0, 0] * u + inverse[0, 2], inverse[1, 1] * v + inverse[1, 2]
            near_x = np.clip(np.floor(x + 0.5 + 1e-9), 0, width - 1).astype(int)
            near_y = np.clip(np.floor(y + 0.5 + 1e-9), 0, height - 1).astype(int)
            region = (slice(place.row, place.row + place.rows), slice(place.column, place.column + place.columns))
            objects = batch["objects"][where]
            np.testing.assert_array_equal(objects[region], scenes.one("objects", row)[near_y, near_x])
            outside = np.ones((rows, columns), bool)
            outside[region] = False
            if isinstance(resize, Letterbox):
                assert (batch["image"][where][outside] == 128).all()
                assert (objects[outside] == -1).all()
            depth, found = scenes.one("depth", row), batch["depth"][where][region]
            held = depth > 0
            assert found[found > 0].min() >= depth[held].min() - 1e-5
            assert found.max() <= depth.max() + 1e-5
            np.testing.assert_array_equal(found == 0, depth[near_y, near_x] == 0)
            # points and the rays of the camera, projected
            points = scenes.one("points", row).astype(float)
            moved = points * np.diag(matrix)[:2] + matrix[:2, 2]
            np.testing.assert_allclose(batch["points"][where], moved, atol=1e-9)
            within = ((moved >= -0.5) & (moved < [columns - 0.5, rows - 0.5])).all(axis=1)
            np.testing.assert_array_equal(batch["points_inside"][where], within)
            xyz = np.random.default_rng(1).uniform([-1, -1, 1], [1, 1, 4], (9, 3))
            seen = xyz @ scenes.one("intrinsics", row).T
            after = xyz @ batch["intrinsics"][where].T
            pixels = seen[:, :2] / seen[:, 2:] * np.diag(matrix)[:2] + matrix[:2, 2]
            np.testing.assert_allclose(after[:, :2] / after[:, 2:], pixels, atol=1e-9)
            boxes, box = scenes.one("boxes", row).astype(float), place.box
            shift, factor = np.array(box[:2]), np.array([place.columns / box[2], place.rows / box[3]])
            corner = (boxes.reshape(3, 2, 2) - shift) * factor + [place.column, place.row]
            cut = corner.clip(0, [columns, rows]).reshape(3, 4)
            np.testing.assert_allclose(batch["boxes"][where], cut, atol=1e-6)
            area = (cut[:, 2] - cut[:, 0]) * (cut[:, 3] - cut[:, 1])
            np.testing.assert_array_equal(batch["boxes_inside"][where], area > 0)
            np.testing.assert_array_equal(batch["pose"][at[:2]], scenes.one("pose", row))


def test_batches_of_tensors_are_those_of_arrays_and_augment_goes_on_from_them(photos: Any) -> None:
    torch = pytest.importorskip("torch")
    from setsup.loading.transforms import Augment, Flip

    crop = RandomResizedCrop(16)
    plain = batches_of(photos, crop, 1)[0]
    batch = next(
        iter(setsup.loader(photos, sampler_of(photos), resize=crop, transform=Augment([Flip(1.0)]), workers=0))
    )
    assert tuple(batch["image"].shape) == (2, 5, 3, 16, 16)
    flipped = batch["image"].mul(255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()[..., ::-1, :]
    np.testing.assert_array_equal(flipped, plain["image"])
    mirror = np.array([[-1, 0, 15], [0, 1, 0], [0, 0, 1.0]])
    expected = mirror @ plain["homographies"]["image"]
    np.testing.assert_allclose(batch["homographies"]["image"].numpy(), expected, atol=1e-9)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resize", "said"),
    [
        (
            RandomResizedCrop(8),
            "RandomResizedCrop cannot tell how to resize 'objects' of scenes, because it is int32 (None, None) and not "
            "an 8-bit image; specify its kind",
        ),
        (
            RandomResizedCrop(8, modalities={"object": "label"}),
            "scenes has no modality 'object'; did you mean 'objects'",
        ),
        (
            RandomResizedCrop(8, modalities={"objects": "labels"}),
            "unknown kind 'labels' of 'objects'; did you mean 'label'",
        ),
        (RandomResizedCrop(8, modalities={"depth": "normal"}), "cannot resize 'depth' as normal; leave it out"),
        (
            RandomResizedCrop(8, modalities=KINDS | {"pose": "points"}),
            "'pose' must be (n, 2) as points, not float32 (4, 4)",
        ),
        (
            RandomResizedCrop(8, modalities=KINDS | {"objects": "depth"}),
            "values that must not be interpolated use label",
        ),
        (
            Letterbox(8, modalities=KINDS, fill={"objets": 1}),
            "fill contains 'objets', which is not a resized modality with pixels; did you mean 'objects'",
        ),
        (Letterbox(8, modalities=KINDS, fill={"pose": 1}), "fill contains 'pose', which is not a resized modality"),
        (Letterbox(8, modalities=KINDS, fill={"image": 128}), "fill of 'image' must be a number from 0 to 1, not 128"),
        (
            Letterbox(8, modalities=KINDS, fill={"objects": 0.5}),
            "fill of 'objects' must be an integer from -2147483648 to 2147483647 (int32), not 0.5",
        ),
    ],
)
def test_modalities_that_cannot_follow_are_refused(resize: Resize, said: str) -> None:
    scenes = Scenes()
    with pytest.raises(SetsupError) as caught:
        setsup.loader(scenes, sampler_of(scenes), resize=resize, to="numpy")
    assert said in str(caught.value)


@pytest.mark.parametrize("workers", [0, "thread"])
@pytest.mark.parametrize(
    ("resize", "sides"),
    [
        (RandomResizedCrop(10**9), "1000000000 × 1000000000"),
        (Letterbox((2**70, 1)), "1180591620717411303424 × 1"),
        (ShortSide(8, copies=10**9), "8 × 8"),
    ],
)
def test_a_batch_beyond_memory_is_refused_before_it_is_allocated(
    photos: Any, resize: Resize, sides: str, workers: Any
) -> None:
    batches = setsup.loader(photos, sampler_of(photos), resize=resize, workers=workers, to="numpy")
    said = rf"^a batch of 10 rows resized to {sides} pixels requires [\d,]+ bytes of memory, but only [\d,]+ are "
    said += rf"available; reduce the size or copies of {type(resize).__name__}, or the rows of a draw$"
    with pytest.raises(SetsupError, match=said):
        next(iter(batches))


def test_a_fill_of_integers_is_exact() -> None:
    large = 2**53 + 1  # no float64
    arrays = {"image": np.zeros((4, 4, 8, 3), np.uint8), "ids": np.ones((4, 4, 8), np.int64)}
    maps = setsup.from_arrays(arrays, {"row": list(range(4))})
    resize = Letterbox(8, modalities={"ids": "label"}, fill={"ids": large})
    found = batches_of(maps, resize, 1)[0]["ids"]
    assert np.unique(found).tolist() == [1, large]


def test_a_modality_of_a_name_that_the_batch_needs_is_refused() -> None:
    class Visible(Scenes):
        modalities = SCENE | {"points_inside": Modality((7,), "bool")}

    resize = RandomResizedCrop(8, modalities=KINDS | {"points_inside": "unchanged"})
    with pytest.raises(SetsupError, match="adds 'points_inside' to the batch, but the dataset has a modality"):
        setsup.loader(Visible(), sampler_of(Visible()), resize=resize, to="numpy")


def test_a_modality_without_pixels_alone_is_refused() -> None:
    scenes = Scenes()
    with pytest.raises(SetsupError, match=r"requires a modality with pixels, .* but the loader fetches pose"):
        setsup.loader(
            scenes,
            sampler_of(scenes),
            modalities=["pose"],
            resize=ShortSide(8, modalities={"pose": "unchanged"}),
            to="numpy",
        )


def test_a_mask_of_another_size_than_its_image_is_refused() -> None:
    class Torn(Scenes):
        """A dataset one of whose masks is smaller than its image."""

        def one(self, name: str, row: int) -> Any:
            found = super().one(name, row)
            return found[1:] if (name, row) == ("objects", 2) else found

    torn = Torn().select([2])
    with pytest.raises(DataError, match=r"row 0 of scenes: 'image' is 90 × 90 pixels .* but 'objects' is 89 × 90"):
        batches_of(torn, RandomResizedCrop(8, modalities=KINDS), 1)


def test_what_is_no_resize_is_refused(photos: Any) -> None:
    sampler = sampler_of(photos)
    with pytest.raises(
        SetsupError, match=r"^resize must be a resize of setsup.loading.resizing, such as .* not 224; for"
    ):
        setsup.loader(photos, sampler, resize=224)  # type: ignore[arg-type]
    pytest.importorskip("torch")
    from setsup.loading.transforms import Augment, ResizedCrop

    for wrong in (ResizedCrop(8), Augment([ResizedCrop(8)])):
        with pytest.raises(SetsupError, match=r"requires images of the same size; pass a resize of"):
            setsup.loader(photos, sampler, resize=wrong)  # type: ignore[arg-type]


def test_a_dataset_opened_with_a_size_is_refused(folder: Path) -> None:
    small = setsup.open_table(folder / "photos.csv", size=(32, 32))
    with pytest.raises(DataError, match=r"^photos was opened with size=, .* open it without size="):
        batches_of(small, RandomResizedCrop(8), 1)
    items = setsup.from_torch([(Image.new("RGB", (9, 7)), 0)] * 9, factors={"row": list(range(9))}, size=(8, 8))
    with pytest.raises(DataError, match="open it without size="):
        batches_of(items, RandomResizedCrop(8), 1)


def test_a_damaged_image_is_named(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "1.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(whole)
    (tmp_path / "b.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "photos.csv").write_text("path,subject\na.jpg,a\nb.jpg,b\n")
    photos = setsup.open_table(tmp_path / "photos.csv").where("subject == 'b'")
    with pytest.raises(DataError, match=r"b\.jpg \(row 1\) could not be decoded: its compressed data is truncated"):
        batches_of(photos, RandomResizedCrop(8), 1)


def test_augment_changes_each_copy_by_itself_or_all_alike(photos: Any) -> None:
    torch = pytest.importorskip("torch")
    from setsup.loading.transforms import Augment, Brightness, Shift

    crop = RandomResizedCrop(16, copies=3)
    plain = batches_of(photos, crop, 1)[0]
    for geometry in ("independent", "copies", "sets"):
        augment = Augment([Shift(0.3), Brightness(0.5, 1.5)], geometry=geometry)  # type: ignore[arg-type]
        batch = next(iter(setsup.loader(photos, sampler_of(photos), resize=crop, transform=augment, workers=0)))
        assert tuple(batch["image"].shape) == (2, 5, 3, 3, 16, 16)
        moved = batch["homography"].reshape(2, 5, 3, 9).numpy()
        assert (moved[:, :, :1] == moved).all() == (geometry != "independent")
        assert (moved[:, :1] == moved).all() == (geometry == "sets")
        whole = batch["homography"].numpy() @ plain["homographies"]["image"]
        np.testing.assert_allclose(batch["homographies"]["image"].numpy(), whole, atol=1e-9)
    assert batch["image"].dtype == torch.float32
    twice = Augment([Shift(0.3)], copies=2)
    with pytest.raises(SetsupError, match=r"the images already have 3 copies each; leave out copies="):
        next(iter(setsup.loader(photos, sampler_of(photos), resize=crop, transform=twice, workers=0)))
