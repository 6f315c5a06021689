"""Views: patches beside slices made by hand, colour views beside scikit-image, positions beside the keyed law."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setsup
from setsup.errors import DataError, SetsupError
from setsup.random import fold, randint_below, stream_key

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("kornia", reason="kornia is not installed")

from setsup.loading.views import ColorViews, Patches, PatchPairs  # noqa: E402
from setsup.loading.views.clips import FrameTriples  # noqa: E402
from setsup.loading.views.colors import SPACES  # noqa: E402

VIEWS = [ColorViews("lab"), Patches(), PatchPairs(offset=32), FrameTriples(later=2)]


def numbered(*shape, dtype=torch.int64):
    """Tensor whose values are their own places, so that equality says where they come from."""
    return torch.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def colored(*lead, height=12, width=10, channels=3):
    rng = np.random.default_rng(0)
    interleaved = rng.integers(0, 256, (*lead, height, width, channels), dtype=np.uint8)
    return torch.from_numpy(interleaved).movedim(-1, -3)


def keys(seed, stream, step, *place):
    """Key of one image, one word after the other."""
    key = stream_key(seed, stream)
    for word in (step, *place):
        key = int(fold(key, word))
    return key


def drawn(key, parameter, n):
    return int(randint_below(fold(key, parameter), n))


# colour views


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("lead", [(2, 3), (2, 3, 2)])
def test_color_views_are_the_channels_of_scikit_image(space, lead):
    skimage_color = pytest.importorskip("skimage.color", reason="scikit-image is not installed")
    images = colored(*lead)
    found = SPACES[space]
    batch = ColorViews(space, normalize=False)({"image": images})
    first, others = (batch[name] for name in found.views)
    assert first.shape == (*lead, 1, 12, 10)
    assert others.shape == (*lead, 2, 12, 10)
    assert first.dtype == others.dtype == torch.float32
    wanted = getattr(skimage_color, f"rgb2{space}")(images.movedim(-3, -1).numpy())
    ours = torch.cat([first, others], dim=-3).movedim(-3, -1).numpy()
    assert np.allclose(ours, wanted, atol=2e-4)
    normalised = ColorViews(space)({"image": images})
    wanted = (wanted - found.mean) / found.std
    assert np.allclose(normalised[found.views[1]].movedim(-3, -1), wanted[..., 1:], atol=1e-5)


def test_color_views_of_float_images_are_those_of_8_bits():
    images = colored(2, 4)
    eight_bit, floating = (ColorViews("lab")({"image": x}) for x in (images, images / 255))
    assert torch.equal(eight_bit["ab"], floating["ab"])


def test_color_views_do_not_depend_on_the_number_of_images():
    images = colored(1, 40, height=64, width=64)  # several chunks
    together = ColorViews("luv")({"image": images})
    alone = [ColorViews("luv")({"image": images[:, slot : slot + 1]}) for slot in range(40)]
    for name in ("L", "uv"):
        assert together[name].is_contiguous()
        assert torch.equal(together[name], torch.cat([batch[name] for batch in alone], dim=1))


def test_two_spaces_go_under_names_of_their_own():
    lab, luv = ColorViews("lab"), ColorViews("luv", names=("lightness", "uv"))
    batch = luv(lab({"image": colored(1, 2)}))
    assert list(batch) == ["image", "L", "ab", "lightness", "uv"]
    assert torch.allclose(batch["L"], batch["lightness"], atol=1e-5)
    with pytest.raises(SetsupError, match="already contains 'L'"):
        ColorViews("luv")(lab({"image": colored(1, 2)}))


@pytest.mark.parametrize("channels", [1, 4])
def test_grey_images_have_no_color_views(channels):
    with pytest.raises(DataError, match=r"'photo': .* requires RGB images \(…, 3, height, width\), not"):
        ColorViews("lab", image="photo")({"photo": colored(1, 2, channels=channels)})


def test_color_views_come_from_a_loader():
    shapes = setsup.load("shapes3d-procedural")
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2)
    batch = next(iter(setsup.loader(shapes, sets, transform=ColorViews("ycbcr"), workers=0)))
    assert batch["Y"].shape == (2, 4, 1, 64, 64)
    assert batch["image"].dtype == torch.uint8


# patches


@given(
    size=st.integers(1, 6), stride=st.integers(1, 7), height=st.integers(6, 14), width=st.integers(6, 14),
    copies=st.sampled_from([(), (2,)]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_patches_are_slices_row_after_row(size, stride, height, width, copies):
    images = numbered(2, 3, *copies, 3, height, width)
    wanted = [
        images[..., y : y + size, x : x + size]
        for y in range(0, height - size + 1, stride)
        for x in range(0, width - size + 1, stride)
    ]
    found = Patches(size, stride)({"image": images})["patches"]
    assert torch.equal(found, torch.stack(wanted, dim=-4))


def test_patches_of_stl10():
    images = colored(1, 2, height=64, width=64)
    patches = Patches()({"image": images})["patches"]
    assert patches.shape == (1, 2, 49, 3, 16, 16)
    assert patches.dtype == torch.uint8
    assert torch.equal(patches[0, 1, 7 * 2 + 5], images[0, 1, :, 16:32, 40:56])


@pytest.mark.parametrize(("height", "width"), [(16, 40), (40, 16)])
def test_patches_of_one_row_or_column_are_a_view(height, width):
    images = torch.zeros(1, 2, 3, height, width)
    patches = Patches()({"image": images})["patches"]
    assert patches.shape == (1, 2, 4, 3, 16, 16)
    patches[...] = 1
    assert images.all()


def test_patches_larger_than_the_image_are_refused():
    with pytest.raises(SetsupError, match=r"patches of 16 pixels require .* 16 x 16 pixels, but 'image' is 12 x 20"):
        Patches()({"image": torch.zeros(1, 2, 3, 12, 20)})


def restored(kind, planes):
    """Planes (…, channels, h, w) with the axes of a kind."""
    return {"color": planes, "normal": planes.movedim(-3, -1)}.get(kind, planes[..., 0, :, :])


@pytest.mark.parametrize("kind", ["color", "label", "depth", "normal"])
@pytest.mark.parametrize("lead", [(2,), (2, 3), (2, 3, 2)])
def test_maps_are_cut_as_images_are(kind, lead):
    """What lies on a pixel is in the same patches, with the axes of its kind; what has one image a set has no slots."""
    planes = numbered(*lead, 3 if kind in ("color", "normal") else 1, 10, 13)
    name = "canonical_x" if len(lead) == 1 else "x"
    batch = {name: restored(kind, planes), "step": 2}
    if len(lead) == 3:  # pictures of as many copies, which tell a label's copies from planes (…, height, width, k)
        batch["image"] = numbered(*lead, 3, 10, 13)
    found = Patches(4, 3, image=name, kind=kind)(batch)["patches"]
    wanted = [planes[..., y : y + 4, x : x + 4] for y in (0, 3, 6) for x in (0, 3, 6, 9)]
    assert torch.equal(found, torch.stack([restored(kind, one) for one in wanted], dim=len(lead)))
    pairs = PatchPairs(4, 3, image=name, kind=kind)(batch)
    corners = pairs["patch_1"].flatten(len(lead))[..., 0]
    for place in np.ndindex(*lead):
        y, x = divmod(int(corners[place]) % 130, 13)
        for patch, shift in (("patch_1", 0), ("patch_2", 3)):
            cut = planes[place][:, y + shift : y + shift + 4, x + shift : x + shift + 4]
            assert torch.equal(pairs[patch][place], restored(kind, cut))
    if len(lead) == 1:  # apart from the first slot's
        slots = PatchPairs(4, 3)({"image": planes[:, None].repeat(16, 1, 1, 1, 1), "step": 2})["patch_1"]
        alone = PatchPairs(4, 3, image=name, kind="color")
        many = alone({name: planes.repeat(16, 1, 1, 1), "step": 2})["patch_1"]
        assert many.shape[:1] == (32,)
        assert not torch.equal(many.flatten(1)[:, 0] % 130, slots[:, 0].flatten(1)[:, 0] % 130)


def test_canonical_images_have_color_views_too():
    images = colored(2, 3)
    found = ColorViews("lab", image="canonical_image", names=("L", "ab"))({"canonical_image": images[:, 1]})
    wanted = ColorViews("lab")({"image": images})
    assert torch.allclose(found["L"], wanted["L"][:, 1], atol=1e-6)
    assert torch.allclose(found["ab"], wanted["ab"][:, 1], atol=1e-6)


def test_maps_of_other_axes_are_refused():
    for kind, shape in (("depth", (64, 64)), ("label", (1, 2, 3, 4, 64, 64)), ("normal", (1, 2, 64, 64))):
        with pytest.raises(DataError, match=rf"'x' of kind {kind} must have shape \(sets, size, height, width"):
            Patches(image="x", kind=kind)({"x": torch.zeros(shape)})
    with pytest.raises(DataError, match="'image' must have shape"):  # depth that is taken for pictures
        Patches()({"image": torch.zeros(2, 5, 64, 64), "indices": torch.zeros(2, 5)})


@pytest.mark.parametrize("kind", ["label", "depth"])
@pytest.mark.parametrize("view", [Patches(8, 4, image="x"), PatchPairs(4, 2, image="x")], ids=["grid", "pairs"])
@pytest.mark.parametrize(("name", "shape"), [("x", (2, 3, 20, 20, 20)), ("canonical_x", (2, 20, 20, 20))])
def test_maps_of_several_planes_are_not_cut_across_them(view, kind, name, shape):
    images = {"image": torch.zeros(2, 3, 3, 20, 20), "canonical_image": torch.zeros(2, 3, 20, 20)}
    batch = {**images, name: torch.zeros(shape), "indices": torch.zeros(2, 3), "step": 0}
    view = replace(view, image=name, kind=kind)
    with pytest.raises(
        DataError, match=rf"'{name}' has shape \(2, .*, one axis more than images of kind {kind}, .*; cut each of"
    ):
        view(batch)
    # what was moved in copies says so itself
    matrices = torch.eye(3).expand(*shape[:-2], 3, 3)
    assert view({**batch, "homographies": {name: matrices}})


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_one_image_a_set_may_have_as_many_channels_as_a_set_has_slots(channels):
    images = numbered(5, channels, 9, 11)
    batch = {"mean": images, "indices": torch.zeros(5, channels, dtype=torch.int64), "step": 0}
    pairs = PatchPairs(4, 3, image="mean")(batch)
    assert tuple(pairs["patch_1"].shape) == (5, channels, 4, 4)
    assert torch.equal(Patches(9, 1, image="mean")(batch)["patches"][:, 0], images[..., :9])


# pairs of patches


@given(
    size=st.integers(1, 5), offset=st.integers(0, 5), more=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    step=st.integers(0, 2**40), seed=st.integers(0, 2**64 - 1), copies=st.sampled_from([(), (2,)]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_patch_pairs_are_slices_at_keyed_places(size, offset, more, step, seed, copies):
    height, width = (size + offset + extra for extra in more)
    images = numbered(2, 3, *copies, 3, height, width)
    batch = PatchPairs(size, offset, seed=seed)({"image": images, "step": step})
    for place in np.ndindex(2, 3, *copies):
        # an image without copies has the key of its copy 0
        key = keys(seed, "PatchPairs", step, *place, *([] if copies else [0]))
        x, y = drawn(key, 0, more[1] + 1), drawn(key, 1, more[0] + 1)
        one, two = (images[place][:, y + d : y + d + size, x + d : x + d + size] for d in (0, offset))
        assert torch.equal(batch["patch_1"][place], one)
        assert torch.equal(batch["patch_2"][place], two)


def test_places_of_patch_pairs_are_uniform():
    height, width, size, offset = 13, 11, 4, 3
    images = numbered(1, 1, 1, height, width).expand(4, 500, 1, height, width)
    corners = PatchPairs(size, offset)({"image": images, "step": 5})["patch_1"][..., 0, 0, 0].numpy().ravel()
    counts = np.zeros((height, width), int)
    np.add.at(counts, divmod(corners, width), 1)
    places = counts[: height - size - offset + 1, : width - size - offset + 1]
    assert counts.sum() == places.sum()  # no place beyond
    expected = len(corners) / places.size
    assert ((places - expected) ** 2 / expected).sum() < places.size + 5 * np.sqrt(2 * places.size)


def test_a_size_that_just_fits_has_one_place():
    images = colored(1, 3, height=9, width=9)
    batch = PatchPairs(6, 3)({"image": images, "step": 1})
    assert torch.equal(batch["patch_1"], images[..., :6, :6])
    assert torch.equal(batch["patch_2"], images[..., 3:, 3:])


@pytest.mark.parametrize(("height", "width"), [(8, 20), (20, 8)])
def test_images_too_small_for_a_pair_are_refused(height, width):
    message = rf"two patches of 6 pixels with an offset of 3 require .* 9 x 9 pixels, but 'image' is {height} x {width}"
    with pytest.raises(SetsupError, match=message):
        PatchPairs(6, 3)({"image": torch.zeros(1, 2, 3, height, width), "step": 0})


# frames and flow


@given(
    frames=st.integers(1, 14), fewer=st.integers(0, 3), later=st.integers(1, 5), flow=st.integers(1, 6),
    step=st.integers(0, 2**40), seed=st.integers(0, 2**64 - 1),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_frame_triples_are_frames_and_fields_at_keyed_times(frames, fewer, later, flow, step, seed):
    motions = max(frames - fewer, 0)
    video, fields = numbered(2, 3, frames, 3, 2, 4), numbered(2, 3, motions, 2, 4, 2)
    # by trial: the times for which every frame and every field is in the clip
    times = [
        t
        for t in range(frames)
        if t + later < frames and t - flow // 2 >= 0 and t - flow // 2 + flow - 1 < motions
    ]  # fmt: skip
    triples = FrameTriples(later, flow, seed=seed)
    clips = {"video": video, "flow": fields, "step": step}
    if not times:
        with pytest.raises(SetsupError, match=rf"clips of {frames} frames and {motions} flow fields"):
            triples(clips)
        return
    batch = triples(clips)
    assert batch["flow_stack"].shape == (2, 3, 2 * flow, 4, 2)
    for place in np.ndindex(2, 3):
        t = times[drawn(keys(seed, "FrameTriples", step, *place, 0), 0, len(times))]
        assert torch.equal(batch["frame"][place], video[place][t])
        assert torch.equal(batch["later"][place], video[place][t + later])
        for number in range(flow):
            for axis in range(2):
                wanted = fields[place][t - flow // 2 + number, axis]
                assert torch.equal(batch["flow_stack"][place][2 * number + axis], wanted)


def test_ten_fields_lie_evenly_around_the_frame():
    # frame 5 of a clip of 11 frames: five fields lead to it, five lead on
    video, fields = numbered(1, 1, 11, 1, 1, 1), numbered(1, 1, 10, 2, 1, 1)
    batch = FrameTriples(later=5)({"video": video, "flow": fields, "step": 3})
    assert (batch["frame"].item(), batch["later"].item()) == (5, 10)
    assert batch["flow_stack"].flatten().tolist() == list(range(20))


def test_clips_of_another_shape_are_refused():
    video, fields = torch.zeros(2, 3, 16, 3, 4, 4), torch.zeros(2, 3, 15, 2, 4, 4)
    triples = FrameTriples(later=1)
    with pytest.raises(DataError, match=r"'video' must have shape \(sets, size, frames"):
        triples({"video": video[:, :, 0], "flow": fields, "step": 0})
    for wrong in (fields[0], fields.movedim(3, -1), fields[:1], fields[:, :2]):
        with pytest.raises(DataError, match=r"'flow' must have shape \(sets, size, fields, 2, height, width\)"):
            triples({"video": video, "flow": wrong, "step": 0})


# all of them


def everything(step=0):
    return {
        "image": colored(2, 3, height=128, width=128),
        "video": numbered(2, 3, 40, 3, 2, 2),
        "flow": numbered(2, 3, 39, 2, 2, 2),
        "step": step,
    }


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_a_view_adds_and_leaves_the_rest_alone(view):
    batch = everything()
    before = copy.deepcopy(batch)
    found = view(batch)
    assert list(batch) == list(before)
    assert len(found) > len(batch)
    for name, value in batch.items():
        assert found[name] is value
        assert value == before[name] if name == "step" else torch.equal(value, before[name])


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_a_view_is_a_function_of_the_batch_that_survives_pickling(view):
    other = pickle.loads(pickle.dumps(view))
    assert other == view
    one, two = view(everything(7)), other(everything(7))
    assert all(torch.equal(one[name], two[name]) for name in one if name != "step")


@pytest.mark.parametrize("make", [PatchPairs, lambda **words: FrameTriples(later=1, **words)])
def test_places_differ_between_steps_slots_seeds_and_streams(make):
    def first(view, step=0):
        batch = everything(step)
        batch["image"] = numbered(1, 1, 1, 256, 256).expand(2, 3, 1, 256, 256)
        batch["video"] = numbered(1, 1, 40, 1, 1, 1).expand(2, 3, 40, 1, 1, 1)
        found = view(batch)
        return found["patch_1" if "patch_1" in found else "frame"][..., 0, 0, 0].flatten().tolist()

    view = make(seed=3)
    assert first(view) == first(view)
    assert len(set(first(view))) > 1
    others = [first(view, 1), first(make(seed=4)), first(make(seed=3, stream="other"))]
    assert all(other != first(view) for other in others)


@pytest.mark.parametrize("view", [PatchPairs(), FrameTriples(later=2)], ids=repr)
@pytest.mark.parametrize("step", [None, 1.0, True, torch.tensor(1)])
def test_a_batch_without_its_step_is_refused(view, step):
    batch = everything(step)
    if step is None:
        del batch["step"]
    with pytest.raises(SetsupError, match=r"batch\['step'\].*setsup\.loader"):
        view(batch)


@pytest.mark.parametrize("view", [ColorViews("lab"), Patches(), PatchPairs(offset=8)], ids=repr)
def test_a_missing_modality_names_near_ones(view):
    with pytest.raises(SetsupError, match="modality 'image' not found in the batch; did you mean 'images'"):
        view({"images": colored(1, 2), "step": 0})


def test_missing_clips_name_near_ones():
    with pytest.raises(SetsupError, match="modality 'flow' not found in the batch; did you mean 'flows'"):
        FrameTriples(later=1)({"video": torch.zeros(1, 1, 16, 3, 2, 2), "flows": 0, "step": 0})


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_arrays_are_refused(view):
    batch = {name: value if name == "step" else value.numpy() for name, value in everything().items()}
    with pytest.raises(DataError, match=r"must be a tensor, not ndarray.*to='torch'"):
        view(batch)


@pytest.mark.parametrize("view", [ColorViews("lab"), Patches(), PatchPairs()], ids=repr)
@pytest.mark.parametrize("shape", [(2, 3, 64, 64), (3, 64, 64), (1, 1, 1, 1, 3, 64, 64)])
def test_other_axes_are_refused(view, shape):
    with pytest.raises(DataError, match=r"'image' must have shape \(sets, size, channels, height, width\)"):
        view({"image": torch.zeros(shape), "step": 0})


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_a_taken_name_is_refused(view):
    with pytest.raises(SetsupError, match="already"):
        view(view(everything()))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ColorViews("lap"), "unknown color space 'lap'; did you mean 'lab'"),
        (lambda: ColorViews("lab", names=("a", "a")), "names must be a tuple of 2 distinct strings"),
        (lambda: ColorViews("lab", names="ab"), "names must be a tuple of 2 distinct strings"),
        (lambda: ColorViews("lab", names=("a", "b", "c")), "names must be a tuple of 2 distinct strings"),
        (lambda: Patches(0), "size must be an integer of at least 1, not 0"),
        (lambda: Patches(kind="labels"), "unknown kind 'labels' of the modality to cut; did you mean 'label'"),
        (lambda: PatchPairs(kind="points"), "unknown kind 'points' of the modality to cut"),
        (lambda: Patches(8, True), "stride must be an integer of at least 1, not True"),
        (lambda: PatchPairs(8.0), r"size must be an integer of at least 1, not 8\.0"),
        (lambda: PatchPairs(8, -1), "offset must be an integer of at least 0, not -1"),
        (lambda: PatchPairs(names=("a",)), "names must be a tuple of 2 distinct strings"),
        (lambda: PatchPairs(seed=-1), "the seed must be"),
        (lambda: FrameTriples(0), "later must be an integer of at least 1, not 0"),
        (lambda: FrameTriples(1, 0), "flow must be an integer of at least 1, not 0"),
        (lambda: FrameTriples(1, names=("a", "b")), "names must be a tuple of 3 distinct strings"),
        (lambda: FrameTriples(1, stream=3), "the stream must be a string"),
    ],
)
def test_bad_arguments_are_refused_at_construction(make, message):
    with pytest.raises(SetsupError, match=message):
        make()
