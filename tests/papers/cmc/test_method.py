"""The method on batches: views as networks read them, one pass of each encoder, padding, groups."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup_papers.cmc import (  # noqa: E402
    CMC,
    BankContrast,
    BatchContrast,
    CMCSettings,
    PatchContrast,
    in_batch_loss,
    pair_views,
    small_view,
    view_images,
)
from setsup_papers.cmc.inputs import group_numbers  # noqa: E402

VIEWS = ("L", "ab", "depth", "normal")
pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def batch_of(count: int = 4) -> dict[str, Any]:
    return {
        "L": numbers(1, count, 1, 16, 16),
        "ab": numbers(1, count, 2, 16, 16, seed=1),
        "depth": numbers(1, count, 16, 16, seed=2),
        "normal": numbers(1, count, 16, 16, 3, seed=3),
        "indices": torch.arange(count)[None] + 3,
        "mask": torch.ones(1, count, dtype=torch.bool),
        "factors": {"video": torch.tensor([[0, 1, 0, -1, -1, 2]])[:, :count]},
    }


def method_of(contrast: Any, views: tuple[str, ...] = VIEWS, **options: Any) -> CMC:
    channels = {"L": 1, "ab": 2, "depth": 1, "normal": 3}
    torch.manual_seed(0)
    encoders = {view: small_view((channels[view], 16, 16), features=8, width=0.25) for view in views}
    return CMC(CMCSettings(views=views, **options), encoders, contrast)


@pytest.mark.parametrize("pairs", ["full", "core"])
def test_each_encoder_runs_once_however_many_pairs_it_is_in(pairs: Any) -> None:
    ways = pair_views(VIEWS, pairs)
    for contrast in (
        BankContrast(ways, 20, 8, negatives=5),
        BatchContrast(ways),
        PatchContrast(ways, 8, dict.fromkeys(VIEWS, 32), 8),
    ):
        method, ran = method_of(contrast), []
        for view, encoder in method.encoders.items():
            encoder.stages["conv1"].register_forward_hook(lambda *_, view=view, ran=ran: ran.append(view))  # type: ignore[index]
        assert method.loss(batch_of()).isfinite()
        assert ran == list(VIEWS)
        assert len(contrast.directions) == (12 if pairs == "full" else 6)


def test_the_loss_is_the_sum_over_pairs_in_both_directions() -> None:
    views, batch = ("L", "ab", "depth"), batch_of()
    method = method_of(BatchContrast(pair_views(views, "core"), 0.2), views).eval()
    found = {view: some[0] for view, some in method.embed(batch).items()}
    ways = [("L", "ab"), ("ab", "L"), ("L", "depth"), ("depth", "L")]
    expected = sum(in_batch_loss(found[one], found[other], 0.2) for one, other in ways)
    torch.testing.assert_close(method.loss(batch), expected)
    assert list(found) == [*views, "all"]
    torch.testing.assert_close(found["all"], torch.cat([found[view] for view in views], 1))
    torch.testing.assert_close(found["L"].norm(dim=1), torch.ones(4))


@pytest.mark.parametrize("objective", ["banks", "batch"])
def test_padding_is_no_image(objective: str) -> None:
    pairs, losses, banks = pair_views(["L", "ab"]), [], []
    whole, padded = batch_of(3), batch_of(5)
    padded["mask"] = torch.tensor([[True, True, True, False, False]])
    for name in ("L", "ab", "indices"):
        padded[name] = torch.cat([whole[name], whole[name][:, :2] + 1], 1)
    for batch in (whole, padded):
        contrast: Any = BankContrast(pairs, 20, 8, negatives=5) if objective == "banks" else BatchContrast(pairs)
        losses.append(method_of(contrast, ("L", "ab")).loss(batch))
        banks.append([bank.state_dict() for bank in contrast.banks.values()] if objective == "banks" else [])
    assert torch.equal(losses[0], losses[1])
    for one, other in zip(*banks, strict=True):
        assert torch.equal(one["values"], other["values"])


def test_clips_of_one_video_are_no_negatives_of_each_other_and_unknown_videos_are_all_different() -> None:
    batch = batch_of(6)
    found = group_numbers(batch, ["video"])
    assert found is not None
    same = found == found[:, None]
    assert same.sum() == 8  # each with itself, and the first with the third
    assert same[0, 2]
    assert group_numbers(batch, []) is None
    method = method_of(BatchContrast(pair_views(["L", "ab"])), ("L", "ab"), apart=("video",)).eval()
    z = {view: some[0] for view, some in method.embed(batch).items()}
    expected = in_batch_loss(z["L"], z["ab"], groups=found) + in_batch_loss(z["ab"], z["L"], groups=found)
    torch.testing.assert_close(method.loss(batch), expected)
    with pytest.raises(SetsupError, match="contains 'clip', which is not a factor"):
        group_numbers(batch, ["clip"])


def test_views_are_read_as_channels_first_floats() -> None:
    bytes_ = torch.full((1, 2, 3, 8, 8), 255, dtype=torch.uint8)
    depth = (
        torch.tensor([1.0, float("nan"), float("inf"), -float("inf")]).repeat(16).reshape(1, 1, 8, 8).expand(1, 2, 8, 8)
    )
    normals, labels = numbers(1, 2, 8, 8, 3), torch.full((1, 2, 8, 8), 7, dtype=torch.uint8)
    batch = {"mask": torch.ones(1, 2).bool(), "image": bytes_, "depth": depth, "normals": normals, "labels": labels}
    assert torch.equal(view_images(batch, "image"), torch.ones(2, 3, 8, 8))
    assert view_images(batch, "depth")[0, 0, 0].tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    assert torch.equal(view_images(batch, "normals"), normals[0].permute(0, 3, 1, 2))
    assert torch.equal(view_images(batch, "labels"), torch.full((2, 1, 8, 8), 7.0))
    with pytest.raises(SetsupError, match=r"no view 'dept' \(it contains image, depth, .*; did you mean 'depth'"):
        view_images(batch, "dept")
    with pytest.raises(DataError, match="'points'"):
        view_images(batch | {"points": torch.zeros(1, 2, 5)}, "points")


def test_a_batch_without_some_views_is_embedded_by_the_others() -> None:
    method = method_of(BatchContrast(pair_views(VIEWS))).eval()
    batch = batch_of()
    del batch["depth"], batch["normal"]
    assert {name: some.shape[-1] for name, some in method.embed(batch).items()} == {"L": 8, "ab": 8, "all": 16}
    with pytest.raises(SetsupError, match="no view 'L'"):
        method.embed({"mask": batch["mask"]})
    found = method.layers(batch, ["conv1", "fc4"], ["ab"])
    assert {name: tuple(layer.shape) for name, layer in found["ab"].items()} == {"conv1": (4, 8, 8, 8), "fc4": (4, 64)}


def test_pairs_of_views() -> None:
    assert pair_views(["L"]) == (("L", "L"),)
    assert pair_views(["a", "b", "c"], "full") == (("a", "b"), ("a", "c"), ("b", "c"))
    for views, pairs in (([], "full"), (["a", "a"], "full"), (["a", "b"], "all")):
        with pytest.raises(SetsupError):
            pair_views(views, pairs)  # type: ignore[arg-type]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SetsupError, match="'all'"):
        CMC(CMCSettings(), {"all": small_view((1, 16, 16))}, BatchContrast([("all", "b")]))


def test_a_step_of_one_image_is_refused_where_it_needs_others() -> None:
    for contrast in (BankContrast(pair_views(VIEWS), 20, 8, negatives=5), BatchContrast(pair_views(VIEWS))):
        method = method_of(contrast)
        with pytest.raises(
            SetsupError, match=r"a step requires at least two images, .*; draw more with --sampler.size"
        ):
            method.loss(batch_of(1))
        assert method.eval().loss(batch_of(1)).isfinite()
    padded = batch_of(2)
    padded["mask"][0, 1] = False
    with pytest.raises(SetsupError, match="a step requires at least two images"):
        method.train().loss(padded)


def test_patches_need_a_stage_with_places() -> None:
    ways = pair_views(["L", "ab"])
    method = method_of(PatchContrast(ways, 8, {"L": 64, "ab": 64}, 8), ("L", "ab"), patch_layer="fc4")
    with pytest.raises(
        SetsupError, match=r"the stage 'fc4' returns 'L' vectors; choose a convolution with --method.patch"
    ):
        method.loss(batch_of())


@pytest.mark.parametrize("name", ["rgb.left", "training", "values", ""])
def test_views_that_torch_cannot_name_are_refused(name: str) -> None:
    encoders = {"L": small_view((1, 16, 16), width=0.25), name: small_view((1, 16, 16), width=0.25)}
    with pytest.raises(SetsupError, match=f"'{name}' cannot be the name of a view: .*; rename the modality"):
        CMC(CMCSettings(), encoders, BatchContrast([("L", name)]))
    with pytest.raises(SetsupError, match=f"'{name}' cannot be the name of a view"):
        BankContrast([("L", name)], 20, 8)
    with pytest.raises(SetsupError, match=f"'{name}' cannot be the name of a view"):
        PatchContrast([("L", name)], 8, {"L": 4, name: 4}, 8)


def test_errors_on_views_list_what_there_is_once() -> None:
    with pytest.raises(SetsupError) as missing:
        view_images({name: batch_of()[name] for name in ("L", "depth", "mask")}, "infrared")
    assert str(missing.value).startswith(
        "the batch has no view 'infrared' (it contains L, depth); choose other views with --views"
    )
    assert "in one .npz file, because a table has one column of images" in str(missing.value)
    with pytest.raises(SetsupError, match=r"no view 'dept' \(it contains L, depth\); .*; did you mean 'depth'\?$"):
        view_images({name: batch_of()[name] for name in ("L", "depth", "mask")}, "dept")
    with pytest.raises(SetsupError, match="view 'ab' is listed twice; list each view only once"):
        pair_views(["L", "ab", "ab"])
    with pytest.raises(SetsupError, match="views must contain at least one modality"):
        pair_views([])
