"""The orbit joint loss: each objective against loops over images, with all divisors, weights and kinds of codes."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

import torch
from torch import Tensor
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.methods.groups import GroupCodes
from setsup_papers.orbits import OrbitDecoder, OrbitEncoder, OrbitJoint, OrbitJointSettings, SpatialTransformer

SETS, SIZE, SIDE, CODE = 3, 4, 16, 6
TABLE = FactorTable([Factor("toy", Kind.NOMINAL, ("a", "b", "c", "d"))], {"toy": [0, 1, 3, 0]})  # no row shows c

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")


def made(objective: str, **options: object) -> OrbitJoint:
    """A small method in evaluation mode, so that images do not depend on each other; weights are the same."""
    torch.manual_seed(0)
    encoder = OrbitEncoder((1, SIDE, SIDE), (3, 3, 4, 4), CODE)
    decoder = OrbitDecoder(encoder) if objective in ("joint", "rectification", "autoencoder") else None
    settings = OrbitJointSettings(objective=objective, orbit=("toy",), **options)  # type: ignore[arg-type]
    return OrbitJoint(settings, encoder, GroupCodes(TABLE, ["toy"]), decoder=decoder).eval()


def drawn() -> dict:
    """Three orbits of four images, one of which is padding."""
    dice = torch.Generator().manual_seed(1)
    mask = torch.ones(SETS, SIZE, dtype=torch.bool)
    mask[1, 3] = False
    return {
        "image": torch.randint(0, 256, (SETS, SIZE, 1, SIDE, SIDE), dtype=torch.uint8, generator=dice),
        "canonical_image": torch.randint(0, 256, (SETS, 1, SIDE, SIDE), dtype=torch.uint8, generator=dice),
        "factors": {"toy": torch.tensor([0, 3, 1])[:, None].expand(SETS, SIZE)},
        "mask": mask,
    }


def images_of(batch: dict) -> list[tuple[int, Tensor, Tensor]]:
    """Orbit, image and canonical image of each that counts."""
    return [
        (number, batch["image"][number, place] / 255, batch["canonical_image"][number] / 255)
        for number in range(SETS)
        for place in range(SIZE)
        if batch["mask"][number, place]
    ]


def by_loops(method: OrbitJoint, batch: dict) -> Tensor:
    """The objective, image after image and triplet after triplet."""
    found = images_of(batch)
    codes = [method.encoder(image[None])[0][0] for _, image, _ in found]
    points = [code / code.square().sum().sqrt() if method.settings.normalise else code for code in codes]
    triplets = []
    for a, (orbit, _, _) in enumerate(found):
        for p, (other, _, _) in enumerate(found):
            if a == p or orbit != other:
                continue
            far = (points[a] - points[p]).square().sum()
            negatives = [
                (points[a] - points[n]).square().sum() for n, (third, _, _) in enumerate(found) if third != orbit
            ]
            beyond = [one for one in negatives if one > far]
            negative = min(beyond) if beyond else max(negatives)
            triplets.append((far + method.settings.margin - negative).clamp(min=0))
    triplet = sum(triplets) / len(triplets) / (CODE if method.settings.scale == "dims" else 1)

    def decoded(target: int) -> Tensor:
        terms = []
        for one in found:
            rebuilt = method.decoder(method.encoder, *method.encoder(one[1][None]))[0]  # type: ignore[misc]
            terms.append((rebuilt - one[target]).square().sum())
        return sum(terms) / len(terms) / (1 if method.settings.scale == "none" else SIDE * SIDE)

    if method.settings.objective == "triplet":
        return triplet
    if method.settings.objective == "exemplar":
        toys = [batch["factors"]["toy"][number, 0].item() for number, _, _ in found]
        classes = torch.tensor([[0, 1, 3].index(toy) for toy in toys])
        return functional.cross_entropy(torch.stack([method.classifier(code) for code in codes]), classes)
    if method.settings.objective != "joint":
        return decoded(2 if method.settings.objective == "rectification" else 1)
    return method.settings.weights[0] * triplet + method.settings.weights[1] * decoded(2)


@pytest.mark.parametrize("scale", ["recmean", "dims", "none"])
@pytest.mark.parametrize(("normalise", "margin"), [(True, 0.2), (False, 1.0), (True, 1.5)])
@pytest.mark.parametrize("objective", ["joint", "triplet", "rectification", "exemplar", "autoencoder"])
def test_values_and_gradients_are_those_of_loops(objective: str, normalise: bool, margin: float, scale: str) -> None:
    options = {"normalise": normalise, "margin": margin, "scale": scale, "weights": (0.7, 3.0)}
    mine, theirs = made(objective, **options), made(objective, **options)
    batch = drawn()
    found, expected = mine.loss(batch), by_loops(theirs, batch)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    found.backward()
    expected.backward()
    gradients = dict(theirs.named_parameters())
    for name, weights in mine.named_parameters():
        other = gradients[name].grad
        if weights.grad is None or other is None:
            assert weights.grad is other is None, name
            continue
        torch.testing.assert_close(weights.grad, other, rtol=1e-3, atol=1e-5 * (1 + float(other.abs().max())))


def test_embeddings_have_the_length_of_the_distances() -> None:
    batch = drawn()
    unit, raw = (made("triplet", normalise=normalise).embed(batch) for normalise in (True, False))
    assert unit.shape == (SETS, SIZE, CODE)
    torch.testing.assert_close(unit.norm(dim=-1), torch.ones(SETS, SIZE))
    torch.testing.assert_close(raw / raw.norm(dim=-1, keepdim=True), unit)


def test_images_go_through_the_transformer_first() -> None:
    torch.manual_seed(0)
    encoder = OrbitEncoder((1, 28, 28), (3, 3, 4, 4), CODE)
    front = SpatialTransformer((1, 28, 28))
    with torch.no_grad():
        front.map.bias.copy_(torch.tensor([-1.0, 0, 0, 0, 1, 0]))  # mirrors
    codes, settings = GroupCodes(TABLE, ["toy"]), OrbitJointSettings(objective="triplet", orbit=("toy",))
    images = torch.rand(1, 5, 1, 28, 28)
    through = OrbitJoint(settings, encoder, codes, front=front).eval().embed({"image": images})
    mirrored = OrbitJoint(settings, encoder, codes).eval().embed({"image": images.flip(-1)})
    torch.testing.assert_close(through, mirrored, rtol=1e-4, atol=1e-5)


def test_rectified_images_are_the_decoders_between_0_and_1() -> None:
    method, batch = made("rectification"), drawn()
    found = method.rectify(batch)
    assert found.shape == batch["image"].shape
    one = method.decoder(method.encoder, *method.encoder(batch["image"][2, :1] / 255))  # type: ignore[misc]
    torch.testing.assert_close(found[2, 0], one[0].clamp(0, 1))


def test_what_does_not_fit_is_refused() -> None:
    batch = drawn()
    without = {name: value for name, value in batch.items() if name != "canonical_image"}
    with pytest.raises(SetsupError, match=r"decodes the canonical image of each orbit.*--canonical"):
        made("joint").loss(without)
    assert made("autoencoder").loss(without) > 0
    with pytest.raises(SetsupError, match="does not train a decoder; choose one of joint, rectification, autoencoder"):
        made("triplet").rectify(batch)
    with pytest.raises(SetsupError, match="objective must be one of joint"):
        made("both")
    with pytest.raises(SetsupError, match="scale must be one of recmean"):
        made("joint", scale="mean")
    with pytest.raises(SetsupError, match="decodes images and requires a decoder; pass a decoder"):
        OrbitJoint(
            OrbitJointSettings(orbit=("toy",)),
            OrbitEncoder((1, SIDE, SIDE), (3, 3, 4, 4), CODE),
            GroupCodes(TABLE, ["toy"]),
        )
    batch["factors"] = {"toy": torch.full((SETS, SIZE), 2)}
    with pytest.raises(SetsupError, match="not in the training data"):
        made("exemplar").loss(batch)


@pytest.mark.parametrize("toys", [[0, 1, 3, -1, -1], [1, 1, 1, -1, -1]])
@pytest.mark.parametrize("objective", ["triplet", "joint", "rectification", "exemplar"])
def test_orbits_without_triplets_are_refused_where_some_are_needed(objective: str, toys: list[int]) -> None:
    table = FactorTable(TABLE.factors, {"toy": toys})
    encoder = OrbitEncoder((1, SIDE, SIDE), (3, 3, 4, 4), CODE)
    settings = OrbitJointSettings(objective=objective, orbit=("toy",))  # type: ignore[arg-type]
    given = (settings, encoder, GroupCodes(table, ["toy"]))
    if objective in ("triplet", "joint"):
        with pytest.raises(SetsupError, match=f"toy forms {len(set(toys)) - 1} orbits? of at most . images?"):
            OrbitJoint(*given, decoder=OrbitDecoder(encoder))
    else:
        OrbitJoint(*given, decoder=OrbitDecoder(encoder))


@pytest.mark.parametrize(("name", "value"), [("rate", -1.0), ("rate", 0.0), ("margin", -0.1), ("margin", float("nan"))])
def test_numbers_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(SetsupError, match=name):
        made("triplet", **{name: value})


@pytest.mark.parametrize("objective", ["joint", "triplet"])
def test_sets_of_one_image_hold_no_triplet(objective: str) -> None:
    batch = {
        name: value if name == "canonical_image" else value[:, :1]
        for name, value in drawn().items()
        if name != "factors"
    }
    batch["factors"] = {"toy": torch.tensor([[0], [3], [1]])}
    with pytest.raises(SetsupError, match=r"each set contains only one image; draw at least two images of each orbit"):
        made(objective).loss(batch)
    made("rectification").loss(batch)
    # more images than orbits: two share an orbit in every batch, as in images that are drawn one by one
    more = {name: torch.cat([value, value]) for name, value in batch.items() if name != "factors"}
    more["factors"] = {"toy": torch.cat([batch["factors"]["toy"]] * 2)}
    assert made("triplet").loss(more) > 0
