"""The Hub itself is far away: its answers are those of huggingface_hub, and a copy in the cache is made by datasets."""

import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import errors

import setsup
from setsup.datasets import open_hub
from setsup.errors import DataError
from setsup.opening import find_kind, options_of
from setsup_cli.main import main

httpx: Any = sys.modules[errors.HfHubHTTPError.__mro__[1].__module__.partition(".")[0]]  # its name has changed

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Answers as the Hub does, to whoever asks for a dataset."""

    def __init__(self, answer: Exception | None = None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str | None]] = []

    def dataset_info(self, name: str, *, revision: str | None = None, timeout: float | None = None) -> Any:
        assert timeout is not None
        assert timeout < 20
        self.asked.append((name, revision))
        if self.answer is not None:
            raise self.answer
        return SimpleNamespace(sha=COMMIT)


def refusal(kind: type[Exception], status: int) -> Exception:
    request = httpx.Request("GET", "https://hub.example/api")
    return kind("said\nno", response=httpx.Response(status, request=request))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    found = Hub(httpx.ConnectError("[Errno -2] Name or service not known"))
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: found)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    datasets.disable_progress_bars()
    return found


@pytest.fixture
def cached(hub: Hub, tmp_path: Path) -> Path:
    """What datasets has in its cache after it loaded ann/pets, with the configuration `small`."""
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    rows = [{"image": np.full((4, 6, 3), 9 * row, np.uint8), "label": row % 2} for row in range(6)]
    whole = datasets.Dataset.from_list(rows, features=features)
    for part, chosen in {"train": range(4), "test": range(4, 6)}.items():
        whole.select(chosen).to_parquet(tmp_path / f"{part}.parquet")
    files = {part: str(tmp_path / f"{part}.parquet") for part in ("train", "test")}
    loaded = datasets.load_dataset("parquet", "small", data_files=files, cache_dir=str(tmp_path / "first"))
    made = Path(loaded["train"].cache_files[0]["filename"]).parent
    target = tmp_path / "cache" / "ann___pets" / "small" / "0.0.0" / COMMIT
    target.parent.mkdir(parents=True)
    made.rename(target)
    for file in target.glob("parquet-*"):
        file.rename(target / file.name.replace("parquet-", "pets-"))
    about = target / "dataset_info.json"
    text = about.read_text().replace('"dataset_name": "parquet"', '"dataset_name": "pets"')
    about.write_text(text.replace(f'"config_name": "{made.parent.parent.name}"', '"config_name": "small"'))
    return target


# -- addresses ---------------------------------------------------------------------------------------------------------


def test_addresses_of_the_hub_and_of_shards() -> None:
    for address in ("hf:ann/pets", "hf:ann/pets@v1", "hf:ann/pets/small", "hf:pets", "HF:ann/pets", "hf:a b"):
        assert find_kind(address) == "hub"
    for address in ("hf://datasets/ann/pets", "hf://buckets/ann/pets", "hf:/datasets/ann/pets"):
        assert find_kind(address) == "shards"
    assert list(options_of("hf:ann/pets")) == list(options_of("x", "huggingface"))


@pytest.mark.parametrize(
    "address", ["hf:", "hf:a b", "hf:ann/pets/a/b", "hf:../x", "hf:ann/pets@", "hf:a//b", "hf:-a/b"]
)
def test_addresses_that_are_none(hub: Hub, address: str) -> None:
    with pytest.raises(
        DataError, match=r"is not the address of a dataset .*hf:owner/name@revision or .*hf://datasets/"
    ):
        setsup.open(address)
    assert not hub.asked


def test_bare_names_never_touch_the_network(hub: Hub) -> None:
    with pytest.raises(
        DataError, match=r"ann/pets does not exist; .* or hf:ann/pets for a dataset of the Hugging Face"
    ):
        setsup.open("ann/pets")
    with pytest.raises(
        DataError, match="'pets' does not exist: the working directory has no such file or folder, and no dataset"
    ):
        setsup.open("pets")
    with pytest.raises(DataError, match="does not exist"):
        setsup.open(Path("hf:ann/pets"))
    assert not hub.asked


def test_what_is_passed_on(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    part = datasets.Dataset.from_list([{"image": b"", "label": 1}])

    def load(*words: Any, **options: Any) -> Any:
        given.append((*words, options["revision"]))
        assert set(options) == {"revision"}
        assert not datasets.config.HF_HUB_OFFLINE
        return datasets.DatasetDict(train=part)

    monkeypatch.setattr(datasets, "load_dataset", load)
    hub.answer = None
    for address in ("hf:ann/pets", "hf:ann/pets@refs%2Fpr%2F1/small", "hf:pets/small"):
        with pytest.raises(DataError):  # the images are empty
            setsup.open(address, image="image")
    assert given == [("ann/pets", None, None), ("ann/pets", "small", "refs/pr/1"), ("pets/small", None, None)]
    assert hub.asked[1] == ("ann/pets", "refs/pr/1")


# -- without a network -------------------------------------------------------------------------------------------------


def test_a_copy_in_the_cache_opens_offline(hub: Hub, cached: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = setsup.open("hf:ann/pets/small")
    assert "cannot be reached ([Errno -2] Name or service not known); hf:ann/pets/small is opened from" in caplog.text
    assert (len(found), found.factors.names) == (6, ("label", "split"))
    assert found.fetch(range(6))["image"][:, 0, 0, 0].tolist() == [0, 9, 18, 27, 36, 45]
    assert len(setsup.open("hf:ann/pets", split="test")) == 2
    assert len(setsup.open(f"hf:ann/pets@{COMMIT}/small")) == 6
    with pytest.raises(
        DataError, match=f"cannot be reached, and the cache contains only the commit {COMMIT}; omit @v2"
    ):
        setsup.open("hf:ann/pets@v2/small")
    with pytest.raises(DataError, match=r"hf:ann/pets/large: .* the cached copy cannot be opened: Couldn't find cache"):
        setsup.open("hf:ann/pets/large")
    assert not datasets.config.HF_HUB_OFFLINE


def test_offline_mode_asks_nobody(hub: Hub, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert len(open_hub("hf:ann/pets/small")) == 6
    with pytest.raises(
        DataError,
        match=r"cannot be reached \(offline mode is on: HF_HUB_OFFLINE\), and the cache of datasets has no copy",
    ):
        open_hub("hf:bob/pets")
    assert not hub.asked


def test_the_command_says_one_sentence(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("setsup").setLevel(logging.NOTSET)
    for words in (["info"], ["sample", "--inactive", "label"]):
        assert main([words[0], "hf:ann/pets", *words[1:]]) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1
        assert said[0].startswith("setsup: hf:ann/pets cannot be loaded: the Hugging Face Hub cannot be reached (")


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            refusal(errors.RepositoryNotFoundError, 401),
            "hf:ann/pets@v1: the Hugging Face Hub has no dataset ann/pets",
        ),
        (
            refusal(errors.GatedRepoError, 403),
            "hf:ann/pets@v1 is gated: request access at https://huggingface.co/da",
        ),
        (
            refusal(errors.RevisionNotFoundError, 404),
            "hf:ann/pets@v1: ann/pets has no revision 'v1' on the Hugging Face Hub",
        ),
        (
            httpx.ReadTimeout("slow"),
            r"the Hugging Face Hub cannot be reached \(slow\), and the cache of datasets has no copy",
        ),
        (refusal(errors.HfHubHTTPError, 500), r"cannot be reached \(said no\), and the cache of datasets has no copy"),
    ],
)
def test_what_the_hub_refuses(hub: Hub, answer: Exception, sentence: str) -> None:
    hub.answer = answer
    with pytest.raises(DataError, match=sentence) as caught:
        setsup.open("hf:ann/pets@v1")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            RuntimeError("Dataset scripts are no longer supported, but found pets.py"),
            "loads its data with a script, which setsup never runs",
        ),
        (
            datasets.exceptions.DatasetNotFoundError("Dataset 'ann/pets' is a gated dataset on the Hub."),
            "is gated",
        ),
        (
            ValueError("BuilderConfig 'x'\nnot found. Available: ['small']"),
            r"load_dataset: BuilderConfig 'x' not found",
        ),
    ],
)
def test_what_datasets_refuses(hub: Hub, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str) -> None:
    def load(*words: Any, **options: Any) -> Any:
        raise error

    hub.answer = None
    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(DataError, match=sentence) as caught:
        setsup.open("hf:ann/pets/x")
    assert "\n" not in str(caught.value)


def test_a_folder_of_that_name_is_not_taken_for_it(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "ann" / "pets").mkdir(parents=True)
    with pytest.raises(
        DataError, match=r"datasets would open the local .*ann/pets instead; change to another directory"
    ):
        setsup.open("hf:ann/pets")
    with pytest.raises(DataError, match="is a dataset of the Hugging Face Hub, which has no root; omit"):
        setsup.open("hf:ann/cats", root=tmp_path)


# -- saved on disk -----------------------------------------------------------------------------------------------------


def test_folders_that_save_to_disk_wrote(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    rows = [{"image": np.full((8, 8, 3), 9 * row, np.uint8), "label": row % 2} for row in range(12)]
    whole = datasets.Dataset.from_list(rows, features=features)
    whole.save_to_disk(tmp_path / "one")
    datasets.DatasetDict(train=whole.select(range(8)), test=whole.select(range(8, 12))).save_to_disk(tmp_path / "parts")
    for name in ("one", "parts"):
        assert main(["sample", str(tmp_path / name), "--inactive", "label", "--size", "2"]) == 0
    assert main(["info", str(tmp_path / "parts"), "--split", "test", "--json"]) == 0
    assert '"samples": 4' in capsys.readouterr().out
    assert not hub.asked
