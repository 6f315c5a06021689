"""The first things that a user of torch tries: each is answered by one sentence that names setsup's own way."""

import inspect
import pickle

import numpy as np
import pandas
import pyarrow as pa
import pytest
from torch.utils.data import DataLoader

import setsup
from setsup.errors import FactorError, SetsupError, UsageError
from setsup.loading import as_torch, set_batches


@pytest.fixture(scope="module")
def photos():
    return setsup.from_arrays({"image": np.zeros((8, 4, 4, 3), np.uint8)}, factors={"subject": ["ann", "bob"] * 4})


@pytest.fixture(scope="module")
def sets(photos):
    return setsup.SetSampler(photos.factors, inactive=["subject"], size=2, sets=2)


@pytest.mark.parametrize(
    "use",
    [
        lambda some: some[0],
        lambda some: some[:2],
        lambda some: list(some),
        lambda some: next(iter(DataLoader(some))),
        lambda some: next(iter(DataLoader(some, batch_size=4, shuffle=True))),
        lambda some: some.where("subject == 'ann'")[0],
    ],
)
def test_rows_are_read_by_fetch(photos, use):
    with pytest.raises(TypeError, match=r"dataset\.fetch.*setsup\.loader.*as_torch\(dataset\)") as caught:
        use(photos)
    assert isinstance(caught.value, SetsupError)


def test_what_the_sentence_names_works(photos, sets):
    assert photos.fetch([0, 1])["image"].shape == (2, 4, 4, 3)
    assert next(iter(setsup.loader(photos, sets, workers=0)))["image"].shape == (2, 2, 3, 4, 4)
    assert next(iter(DataLoader(as_torch(photos), batch_size=4)))["image"].shape == (4, 3, 4, 4)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("batch_size", 32, "size="),
        ("shuffle", True, "EpochSampler"),
        ("num_workers", 2, "workers="),
        ("drop_last", True, "partial="),
        ("collate_fn", list, "transform="),
        ("pin_memory", True, "to="),
        ("prefetch_factor", 2, "prefetch="),
        ("generator", None, "seed="),
        ("fixed", ["subject"], "inactive="),
        ("varying", ["subject"], "active="),
    ],
)
def test_arguments_of_torch_are_answered(photos, sets, name, value, said):
    for call in (
        lambda **given: setsup.loader(photos, sets, **given),
        lambda **given: setsup.loader(photos, **given),
        lambda **given: setsup.SetSampler(photos.factors, size=2, **given),
        lambda **given: setsup.DomainSampler(photos.factors, "subject", **given),
        lambda **given: set_batches(sets, **given),
    ):
        with pytest.raises(UsageError, match=f"got an unexpected keyword argument '{name}'; .*{said}"):
            call(**{name: value})
    with pytest.raises(
        UsageError, match=f"as_torch got an unexpected keyword argument '{name}'; pass it to the DataLoader"
    ):
        as_torch(photos, **{name: value})


def test_arguments_that_a_sampler_has_are_its_own(photos):
    assert len(setsup.EpochSampler(photos.factors, 4, shuffle=False, epochs=1)) == 2


def test_other_arguments_are_answered_with_those_that_there_are(photos, sets):
    for call, said in {
        lambda: setsup.loader(
            photos, sets, worker=1
        ): r"Loader got an unexpected keyword argument 'worker'; did you mean 'workers'\?",
        lambda: setsup.loader(
            photos, sets, wrong=1
        ): r"Loader got an unexpected keyword argument 'wrong'; choose from dataset, sampler, modalities, .*to$",
        lambda: set_batches(
            sets, step=1
        ): r"set_batches got an unexpected keyword argument 'step'; did you mean 'steps'",
        lambda: setsup.SetSampler(
            photos.factors, inactiv=["subject"]
        ): r"SetSampler got an unexpected keyword argument 'inactiv'; did you mean 'inactive'",
    }.items():
        with pytest.raises(UsageError, match=f"^{said}"):
            call()


def test_signatures_stay(sets):
    assert list(inspect.signature(setsup.SetSampler).parameters)[:2] == ["table", "inactive"]
    assert list(inspect.signature(setsup.loader).parameters)[:2] == ["dataset", "sampler"]
    assert list(inspect.signature(set_batches).parameters) == ["sampler", "start", "steps"]
    assert pickle.loads(pickle.dumps(sets))[3].indices.tolist() == sets[3].indices.tolist()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": [1, 2, 3]}, "FactorTable.from_values"),
        (pandas.DataFrame({"a": [1]}), "FactorTable.from_pandas"),
        (pa.table({"a": [1]}), "FactorTable.from_arrow"),
        ("photos.csv", "FactorTable.from_csv"),
    ],
)
def test_a_table_of_values(given, said):
    with pytest.raises(FactorError, match=said):
        setsup.FactorTable(given)
    assert setsup.FactorTable.from_values({"a": [1, 2, 3]})["a"].levels == (1, 2, 3)
