"""Orbits in embeddings: what is drawn, values against loops over images, and what is said where something lacks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402
from scipy.spatial.distance import cdist  # noqa: E402

import setsup  # noqa: E402
from setsup.datasets import Dataset, Modality, fetch_request  # noqa: E402
from setsup.errors import FactorError, SetsupError  # noqa: E402
from setsup.experiments import TrainedRun  # noqa: E402
from setsup.experiments.encoders import encoder_run, open_encoder  # noqa: E402
from setsup.experiments.evaluations import OrbitStructure, rectified  # noqa: E402
from setsup.experiments.evaluations.drawn_orbits import draw_orbits  # noqa: E402
from setsup.experiments.evaluations.orbits import draw_orbit_sheet, study_orbits  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402

SIZES = [5, 1, 9, 3, 2, 1]


class Views(Dataset):
    """Noisy views of objects, of which there are 1 to 9; ``view`` 0 is the one without noise, and not first."""

    def __init__(self, dtype: str = "uint8") -> None:
        dice = np.random.default_rng(0)
        self.name = "views"
        objects = np.repeat(np.arange(len(SIZES)), SIZES)
        views = np.concatenate([np.arange(size)[::-1] for size in SIZES])
        names = [Factor("object", Kind.NOMINAL, tuple(range(6))), Factor("view", Kind.ORDINAL, tuple(range(9)))]
        self.factors = FactorTable(names, {"object": objects, "view": views})
        clean = dice.integers(60, 200, (6, 4, 6, 1))
        noise = dice.integers(-50, 50, (len(objects), 4, 6, 1)) * (views > 0)[:, None, None, None]
        self.images = (clean[objects] + noise).astype(np.uint8)
        if dtype == "float32":
            self.images = (self.images / 255).astype(np.float32)
        self.modalities = {"image": Modality((4, 6, 1), dtype, color="grey")}

    def fetch(self, indices: Any, modalities: Any = None) -> dict[str, np.ndarray]:
        rows, names = fetch_request(self, indices, modalities)
        return {name: self.images[rows] for name in names}


class Halved(LightningModule):
    """It decodes every image to half of it."""

    def embed(self, batch: Any) -> Any:
        images = batch["image"]
        return (images / 255 if images.dtype == torch.uint8 else images).flatten(2)

    def rectify(self, batch: Any) -> Any:
        return self.embed(batch).reshape(batch["image"].shape) / 2


def run(method: Any, dataset: Dataset | None = None) -> TrainedRun:
    trained = TrainedRun("views/halved", method, seed=0, folder=Path())
    trained.dataset = Views() if dataset is None else dataset
    return trained


VIEWS = OrbitStructure(orbit=("object",), canonical="argmin:view")


def test_all_orbits_with_all_members_are_drawn_where_there_are_no_more() -> None:
    drawn = VIEWS.draw(run(Halved()))
    assert sorted(drawn.rows.tolist()) == list(range(21))
    table = Views().factors
    for orbit, name in enumerate(drawn.names):
        rows = drawn.rows[drawn.orbits == orbit]
        (number,) = set(table.values("object", rows).tolist())
        assert name == f"object = {number}"
        assert drawn.sizes[orbit] == len(rows) == SIZES[number]
        assert table.values("view", drawn.canonical[orbit : orbit + 1]).tolist() == [0]
        assert drawn.members(orbit).tolist() == [row for row in rows if row != drawn.canonical[orbit]]


def test_few_orbits_and_members_are_drawn_by_the_seed_without_repeats() -> None:
    table = setsup.load("shapes3d-procedural").factors
    names = ["wall_hue", "shape"]
    drawn = draw_orbits(table, names, "argmin:scale", count=7, members=5, seed=4)
    again = draw_orbits(table, names, "argmin:scale", count=7, members=5, seed=4)
    assert np.array_equal(drawn.rows, again.rows)
    assert not np.array_equal(drawn.rows, draw_orbits(table, names, count=7, members=5, seed=5).rows)
    assert len(set(drawn.names)) == 7
    assert np.bincount(drawn.orbits).tolist() == [5] * 7
    assert len(set(drawn.rows.tolist())) == 35
    assert drawn.sizes.tolist() == [len(table) // 40] * 7
    assert (drawn.lacking, drawn.among, drawn.note()) == (0, 40, "")


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_values_are_those_of_loops_over_images(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rectified, "_ROWS", 8)  # several parts
    trained = run(Halved(), Views(dtype))
    drawn = VIEWS.draw(trained)
    found = study_orbits(trained, drawn)
    images = Views().images.reshape(21, 24) / 255
    canonical = images[drawn.canonical]
    errors: dict[str, list[float]] = {"rectified": [], "input": [], "mean image": []}
    hits = []
    for orbit in range(6):
        members = drawn.members(orbit)
        for member in images[members]:
            errors["rectified"].append(((member / 2 - canonical[orbit]) ** 2).mean())
            errors["input"].append(((member - canonical[orbit]) ** 2).mean())
            errors["mean image"].append(((images[members].mean(0) - canonical[orbit]) ** 2).mean())
            hits.append(cdist([member], canonical).argmin() == orbit)
        if len(members):
            assert found.each["error: input"][orbit] == pytest.approx(
                np.mean(errors["input"][-len(members) :]), rel=1e-5
            )
        else:
            assert np.isnan(found.each["error: input"][orbit])
            assert np.isnan(found.each["nearest canonical"][orbit])
    for name, some in errors.items():
        assert len(some) == 15
        assert found.values[f"error: {name}"] == pytest.approx(np.mean(some), rel=1e-5)
        assert found.values[f"PSNR: {name}"] == pytest.approx(-10 * np.log10(np.mean(some)), rel=1e-5)
    assert found.values["nearest canonical"] == pytest.approx(np.mean(hits))
    assert found.values["chance: nearest canonical"] == pytest.approx(1 / 6)
    counts = ("orbits", "rows", "orbits of one member", "orbits without canonical member", "pairs within")
    assert [found.values[name] for name in counts] == [6, 21, 2, 0, 50]
    assert found.values["between, scaled: root mean square"] == 1
    assert found.note == ""
    assert len(found.beneath) == 4  # orbits of one member show nothing


def test_a_sheet_has_images_of_all_methods() -> None:
    trained = run(Halved())
    drawn = VIEWS.draw(trained)
    pixels = encoder_run(open_encoder("pixels", "cpu"), trained.dataset)
    found = {"halved": study_orbits(trained, drawn), "pixels": study_orbits(pixels, drawn)}
    label, images = found["halved"].beneath[0]
    orbit = next(orbit for orbit in range(6) if len(drawn.members(orbit)))
    shown = [drawn.canonical[orbit], *drawn.members(orbit)]
    assert label == "rectified"
    for row, image in zip(shown, images, strict=True):
        assert np.abs(image - trained.dataset.images[row] / 2).max() <= 0.51
    label, images = found["pixels"].beneath[0]
    assert label.startswith("nearest canonical image\n")
    assert images[0] is None
    near = cdist(
        trained.dataset.images[drawn.members(orbit)].reshape(-1, 24) / 255.0,
        trained.dataset.images[drawn.canonical].reshape(6, 24) / 255.0,
    ).argmin(1)
    for number, image in zip(near, images[1:], strict=True):
        assert np.array_equal(image, trained.dataset.images[drawn.canonical[number]])
    sheet = draw_orbit_sheet(trained.dataset, drawn, found)
    assert sheet.mode == "RGB"
    alone = draw_orbit_sheet(trained.dataset, drawn, {"halved": found["halved"]})
    assert sheet.size[1] > alone.size[1]


def test_without_canonical_members_distances_are_left() -> None:
    trained = run(Halved())
    drawn = draw_orbits(trained.dataset.factors, ["object"])
    found = study_orbits(trained, drawn)
    assert not {"nearest canonical", "error: rectified", "PSNR: input"} & found.values.keys()
    assert found.values["AUC"] > 0.5
    assert [label for label, _ in found.beneath] == ["rectified"] * 6
    assert draw_orbit_sheet(trained.dataset, drawn, {"halved": found}).mode == "RGB"
    assert drawn.note() == ""


def test_orbits_without_a_canonical_row_are_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = run(Halved())
    monkeypatch.setattr(
        "setsup.experiments.evaluations.drawn_orbits.canonical_rows",
        lambda table, groups, canonical: np.array([4, -1, 14, -1, -1, -1]),
    )
    drawn = VIEWS.draw(trained)
    assert drawn.note().startswith(
        "4 of 6 orbits lack a row with canonical='argmin:view'; results that require a canonical member omit 4 of the 6"
    )
    found = study_orbits(trained, drawn)
    assert found.values["chance: nearest canonical"] == 0.5
    assert np.isfinite(found.each["error: rectified"]).sum() == 2
    assert draw_orbit_sheet(trained.dataset, drawn, {"halved": found}).mode == "RGB"
    monkeypatch.setattr(
        "setsup.experiments.evaluations.drawn_orbits.canonical_rows", lambda table, groups, canonical: np.full(6, -1)
    )
    drawn = VIEWS.draw(trained)
    assert drawn.note().startswith("none of the 6 orbits has a row with canonical='argmin:view'")
    assert "error: rectified" not in study_orbits(trained, drawn).values


def test_a_method_that_decodes_nothing_says_why_and_is_measured() -> None:
    class Refusing(Halved):
        def rectify(self, batch: Any) -> Any:
            raise SetsupError("it has no decoder")

    class Small(Halved):
        def rectify(self, batch: Any) -> Any:
            return super().rectify(batch)[..., :3]

    class Large(Halved):
        def rectify(self, batch: Any) -> Any:
            return super().rectify(batch) * 255

    for method, reason in (
        (Refusing(), "nothing is rectified: it has no decoder"),
        (
            Small(),
            "one image of the same size for each image, not (1, 15, 1, 4, 3) for images (1, 15, 1, 4, 6)",
        ),
        (Large(), "the output of Large.rectify must have values in [0, 1] to compute errors, not from "),
    ):
        trained = run(method)
        found = study_orbits(trained, VIEWS.draw(trained))
        assert "nothing is rectified: " in found.note
        assert reason.partition("(1, 15")[0] in found.note
        assert "error: rectified" not in found.values
        assert found.beneath[0][0].startswith("nearest canonical image")


def test_what_cannot_be_drawn_is_one_sentence() -> None:
    table = Views().factors
    one = FactorTable.from_values({"all": [1, 1, 1], "take": [0, 1, 2]})
    for names, of, sentence in (
        (["all"], one, r"the factors of an orbit \(all\) divide the rows into fewer than two orbits"),
        (["take"], one, "all 3 orbits of take have only one member, but distances require two; choose fewer factors"),
    ):
        with pytest.raises(SetsupError, match=sentence):
            draw_orbits(of, names)
    with pytest.raises(FactorError, match="unknown factor 'vew'; did you mean 'view'"):
        draw_orbits(table, ["object"], "argmin:vew")
    with pytest.raises(SetsupError, match="the number of members"):
        draw_orbits(table, ["object"], members=1)
    with pytest.raises(SetsupError, match="draw fewer orbits, or fewer members"):
        draw_orbits(setsup.load("shapes3d-procedural").factors, ["wall_hue"], members=2_000)


def test_pixels_and_random_networks_are_measured_on_shapes() -> None:
    shapes = setsup.load("shapes3d-procedural")
    same = OrbitStructure(orbit=("object_hue", "wall_hue", "floor_hue"), canonical="first", count=3, members=4)
    measured = same.measure(encoder_run(open_encoder("pixels:4", "cpu"), shapes))
    assert measured.values["AUC"] > 0.8  # colours are what pixels show
    assert measured.pictures["orbits"].mode == "RGB"
    assert same.shrunk().count == 4
