"""Objects Room, Tetrominoes and CLEVR with masks: images, masks and objects equal to the records of their release."""

import gzip

import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks.multi_object import dataset as module
from setsup.errors import DataError
from tests.true_files import clevr_with_masks, objects_room, tetrominoes
from tests.true_files.multi_dsprites import bytes_list, float_list, serialised
from tests.true_files.shapenet_renderings import framed


def check_objects(found, told, levels, numbers):
    """Compare the objects of each image, whose features are `told`, with the arrays nested per image."""
    whole = found.fetch(range(len(told)))
    for number, each in enumerate(told):
        own = np.flatnonzero(each["visibility"])[1:]
        count = len(own)
        assert found.factors.values("objects", number) == count
        for name in levels:
            names = found.objects[name].levels
            assert [names[code] for code in whole[name][number, :count]] == each[name][own].tolist()
            assert (whole[name][number, count:] == -1).all()
            for level in names:
                assert found.factors.values(f"{name}_{level}", number) == (each[name][own] == level).sum()
        for name, expected in numbers(each).items():
            assert np.array_equal(whole[name][number, :count], expected[own])
            assert np.isnan(whole[name][number, count:]).all()
    return whole


def test_tetrominoes(tmp_path):
    tetrominoes.write(tmp_path)
    found = setsup.load("tetrominoes", tmp_path)
    told = [tetrominoes.factors(number) for number in range(tetrominoes.NUMBER)]
    numbers = ("x", "y", "color")
    whole = check_objects(found, told, ("shape",), lambda each: {name: each[name] for name in numbers})
    for number in range(len(told)):
        image, masks = tetrominoes.drawn(number)
        assert np.array_equal(whole["image"][number], image)
        assert np.array_equal(whole["instances"][number], masks[..., 0].argmax(axis=0) - 1)


def test_clevr_with_masks(tmp_path):
    (tmp_path / "clevr_with_masks").mkdir()
    clevr_with_masks.write(tmp_path / "clevr_with_masks")  # the folder of the bucket
    found = setsup.load("clevr-with-masks", tmp_path)
    told = [clevr_with_masks.factors(number) for number in range(len(clevr_with_masks.SCENES))]

    def numbers(each):
        position = np.stack([each[name] for name in "xyz"], axis=-1)
        pixel, depth = each["pixel_coords"][:, :2], each["pixel_coords"][:, 2]
        return {"rotation": each["rotation"], "position": position, "pixel": pixel, "depth": depth}

    whole = check_objects(found, told, tuple(clevr_with_masks.LEVELS), numbers)
    for number in range(len(told)):
        image, masks = clevr_with_masks.drawn(number)
        assert np.array_equal(whole["image"][number], image)
        assert np.array_equal(whole["instances"][number], masks[..., 0].argmax(axis=0) - 1)


@pytest.mark.parametrize("version", objects_room.FILES)
def test_objects_room(tmp_path, version):
    objects_room.write(tmp_path, version)
    found = setsup.load("objects-room", tmp_path, version=version)
    assert found.factors.values("objects").tolist() == list(objects_room.COUNTS[version])
    assert len(found.objects) == sum(objects_room.COUNTS[version])
    whole = found.fetch(range(len(found)))
    for number, count in enumerate(objects_room.COUNTS[version]):
        image, masks = objects_room.drawn(version, number)
        entity = masks[..., 0].argmax(axis=0)
        first = objects_room.ENTITIES[version] - count  # the masks of no object come before
        assert np.array_equal(whole["image"][number], image)
        assert np.array_equal(whole["labels"][number], np.minimum(entity, 4))
        assert np.array_equal(whole["instances"][number], np.where(entity < 4, -1, entity - first))


def test_a_large_version_is_prepared_as_its_message_says(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SMALL", 1)
    objects_room.write(tmp_path, "six_objects")
    with pytest.raises(DataError, match=r"setsup prepare objects-room --option version=six_objects --root"):
        setsup.load("objects-room", tmp_path, version="six_objects")


def test_damaged_records(tmp_path):
    rooms, pieces = tmp_path / "objects_room_train.tfrecords", tmp_path / "tetrominoes_train.tfrecords"
    image, masks = objects_room.drawn("six_objects", 0)
    rooms.write_bytes(framed(serialised({"image": bytes_list(image), "mask": bytes_list(masks)})))
    with pytest.raises(DataError, match=r"record 0: 'mask' has 40,960 bytes; expected 7 × 64 × 64 bytes"):
        setsup.load("objects-room", tmp_path)
    image, masks = tetrominoes.drawn(0)
    pixels = {"image": bytes_list(image), "mask": bytes_list(masks)}
    for name, value, words in (
        ("shape", np.full(4, 1.5, np.float32), "'shape' is not an integer"),
        ("x", np.full(4, np.nan, np.float32), "'x' of a visible object is not finite"),
        ("y", np.zeros(3, np.float32), "'y' contains 3 values of type float; expected 4"),
        ("visibility", np.zeros(4, np.float32), "record 0 contains no visible object"),
    ):
        lists = {each: float_list(values) for each, values in {**tetrominoes.factors(0), name: value}.items()}
        pieces.write_bytes(gzip.compress(framed(serialised({**pixels, **lists}))))
        with pytest.raises(DataError, match=words) as found:
            setsup.load("tetrominoes", tmp_path)
        assert "\n" not in str(found.value)
