"""Datasets of the Hugging Face Hub, by the address ``hf:owner/name``: the only source that opening downloads.

Convention
----------
``hf:owner/name`` is a dataset of the Hub, which ``datasets`` loads into its own cache and setsup opens from there, or
shards that setsup wrote, which ``huggingface_hub`` downloads into its cache; ``hf://datasets/owner/name/…`` is the
address of such shards, which are read in place.

Notes
-----
If the Hub cannot be reached, ``datasets`` retries six times, which takes from 23 seconds to minutes. This module
therefore queries the Hub once, with a timeout; without an answer, it sets ``datasets`` offline, which opens the copy in
its cache. Scripts of repositories are never run.
"""

import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from setsup.checks import check_arguments
from setsup.datasets.own.huggingface.dataset import HuggingFaceDataset, Names, from_huggingface
from setsup.errors import DataError, imported
from setsup.factors import Factor, Kind

__all__ = [
    "HUB_ADDRESS",
    "HubAddress",
    "HubAnswer",
    "ask_hub",
    "download_shards",
    "load_from_hub",
    "may_be_on_hub",
    "open_hub",
]

HUB_ADDRESS = re.compile(r"(?i)hf:(?!/|:)")
"""Prefix of an address of a dataset of the Hub: ``hf:`` without a slash after it."""

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_ADDRESS = re.compile(rf"hf:(?P<name>(?:{_PART}/)?{_PART})(?:@(?P<revision>[^/@\s]+))?(?:/(?P<config>[^/@\s]+))?")
_TIMEOUT = 5.0  # seconds in which the Hub has to answer
_LETTERS = 200  # of an error of datasets that are shown
_OFFLINE = threading.Lock()

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class HubAddress:
    """A dataset of the Hub: the name of its repository, and optionally a revision and a configuration."""

    name: str
    revision: str | None
    config: str | None

    @classmethod
    def parse(cls, text: str) -> "HubAddress":
        """Read an address."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise DataError(
                f"{text} is not the address of a dataset on the Hugging Face Hub; expected hf:owner/name, "
                "hf:owner/name@revision or hf:owner/name/config (or hf://datasets/owner/name/… for shards in a "
                "repository)"
            )
        revision = match["revision"]
        return cls(match["name"], revision and unquote(revision), match["config"])


@dataclass(frozen=True, slots=True)
class HubAnswer:
    """What the Hub says of a repository: why it could not be reached, else the names of its files."""

    unreachable: str | None
    files: frozenset[str] = frozenset()


def may_be_on_hub(source: str) -> bool:
    """Whether a string could be the name of a repository: ``owner/name``."""
    return re.fullmatch(rf"{_PART}/{_PART}", source) is not None


def open_hub(
    address: str,
    image: Names = None,
    factors: Sequence[Factor] = (),
    kinds: Mapping[str, Kind | str] | None = None,
    size: tuple[int, int] | None = None,
) -> HuggingFaceDataset:
    """Open a dataset of the Hugging Face Hub, as :func:`setsup.open` does.

    ``datasets.load_dataset`` downloads it into its own cache (``$HF_HOME``) unless it is cached already; without a
    network, the copy in the cache is opened. Scripts of a repository are never run. Splits are concatenated, and become
    the levels of the factor ``split``. Shards that setsup wrote are opened so, too, while :func:`setsup.open` opens
    them by their catalogue.

    Parameters
    ----------
    address : str
        ``"hf:owner/name"``, ``"hf:owner/name@revision"`` (a branch, tag or commit, in which a slash is written as
        ``%2F``), ``"hf:owner/name/config"`` or ``"hf:owner/name@revision/config"``.
    image, factors, kinds, size
        As for :func:`setsup.from_huggingface`.

    Returns
    -------
    HuggingFaceDataset

    Raises
    ------
    DataError
        When the dataset, revision or configuration does not exist, requires permission, or is loaded by a script; when
        the Hub cannot be reached and the cache has no copy; when ``datasets`` is not installed.

    Examples
    --------
    >>> open_hub("hf:owner/name/config/more")
    Traceback (most recent call last):
    setsup.errors.DataError: hf:owner/name/config/more is not the address of a dataset on the Hugging Face Hub; ...

    """
    check_arguments(open_hub, locals(), DataError)
    wanted = HubAddress.parse(address)
    return load_from_hub(address, wanted, ask_hub(address, wanted), image, factors, kinds, size)


def load_from_hub(
    address: str,
    wanted: HubAddress,
    answer: HubAnswer,
    image: Names = None,
    factors: Sequence[Factor] = (),
    kinds: Mapping[str, Kind | str] | None = None,
    size: tuple[int, int] | None = None,
) -> HuggingFaceDataset:
    """Load a dataset about which the Hub was asked by ``datasets``, and open it."""
    datasets = imported("datasets", "hf")
    if os.path.exists(wanted.name):
        raise DataError(
            f"{address} is a dataset on the Hugging Face Hub, but datasets would open the local "
            f"{Path(wanted.name).absolute()} instead; change to another directory"
        )
    unreachable = answer.unreachable
    try:
        with _offline(datasets, unreachable is not None):
            splits = _load(datasets, wanted)
    except Exception as error:
        # its builders raise whatever they stumble over
        raise _why_not(address, wanted, unreachable, error) from error
    if unreachable is not None:
        _log.warning("the Hugging Face Hub cannot be reached (%s); %s is opened from the cache", unreachable, address)
        _check_revision(address, wanted, splits)
    return from_huggingface(splits, image=image, factors=factors, kinds=kinds, size=size)


def download_shards(address: str, wanted: HubAddress, answer: HubAnswer, mark: str) -> Path | None:
    """Folder with the shards of a repository, in the Hub's own cache; None where it has no file `mark` of them.

    Without an answer of the Hub, the copy in the cache is taken.
    """
    if wanted.config is not None or (answer.unreachable is None and mark not in answer.files):
        return None
    hub = imported("huggingface_hub", "hf")
    offline = answer.unreachable is not None
    try:
        folder = hub.snapshot_download(
            wanted.name,
            repo_type="dataset",
            revision=wanted.revision,  # by name, which the cache keeps for a time without network
            allow_patterns=[mark, "*.tar", "*.parquet"],
            local_files_only=offline,
        )
    except Exception as error:  # of the network, the disk or the cache
        if offline:
            return None  # whoever loads it says that there is no copy
        raise DataError(f"{address} cannot be downloaded: {_one_line(error)}; try again") from error
    if not (Path(folder) / mark).is_file():
        return None
    if offline:
        _log.warning(
            "the Hugging Face Hub cannot be reached (%s); %s is opened from the cache", answer.unreachable, address
        )
    return Path(folder)


def ask_hub(address: str, wanted: HubAddress) -> HubAnswer:
    """Query the Hub for a repository."""
    hub = imported("huggingface_hub", "hf")
    errors = imported("huggingface_hub.errors", "hf")
    if imported("huggingface_hub.constants", "hf").HF_HUB_OFFLINE or imported("datasets", "hf").config.HF_HUB_OFFLINE:
        return HubAnswer("offline mode is on: HF_HUB_OFFLINE")
    try:
        about = hub.HfApi().dataset_info(wanted.name, revision=wanted.revision, timeout=_TIMEOUT)
    except errors.RevisionNotFoundError as error:
        raise DataError(
            f"{address}: {wanted.name} has no revision {wanted.revision!r} on the Hugging Face Hub; check the branch, "
            "tag or commit after @"
        ) from error
    except errors.GatedRepoError as error:
        raise _gated(address, wanted) from error
    except errors.RepositoryNotFoundError as error:
        raise DataError(
            f"{address}: the Hugging Face Hub has no dataset {wanted.name}, or you do not have access to it; check "
            "the name, or sign in with `hf auth login`"
        ) from error
    except errors.HFValidationError as error:
        raise DataError(f"{address}: {_one_line(error)}") from error
    except Exception as error:  # no network, no name server, a proxy's page, a time-out, the Hub's own trouble
        return HubAnswer(_one_line(error).partition(" For more information")[0])
    files = frozenset(one.rfilename for one in getattr(about, "siblings", None) or ())
    return HubAnswer(None, files)


def _load(datasets: Any, wanted: HubAddress) -> Any:
    # from version 4 on there are no scripts, and the option is gone
    plain = {"trust_remote_code": False} if int(datasets.__version__.partition(".")[0]) < 4 else {}
    return datasets.load_dataset(wanted.name, wanted.config, revision=wanted.revision, **plain)


@contextmanager
def _offline(datasets: Any, wanted: bool) -> Iterator[None]:
    """Let ``datasets`` work offline for a while; it has no argument for this."""
    with _OFFLINE:
        before = datasets.config.HF_HUB_OFFLINE
        datasets.config.HF_HUB_OFFLINE = before or wanted
        try:
            yield
        finally:
            datasets.config.HF_HUB_OFFLINE = before


def _check_revision(address: str, wanted: HubAddress, splits: Any) -> None:
    """Refuse a cached copy of another revision, which ``datasets`` would open; its folder is named by the commit."""
    if wanted.revision is None:
        return
    files = [file for part in splits.values() for file in part.cache_files]
    commits = {Path(file["filename"]).parent.name for file in files}
    if commits != {wanted.revision}:
        raise DataError(
            f"{address}: the Hugging Face Hub cannot be reached, and the cache contains only the commit "
            f"{', '.join(sorted(commits)) or '(unknown)'}; omit @{wanted.revision} to open that commit"
        )


def _why_not(address: str, wanted: HubAddress, unreachable: str | None, error: Exception) -> DataError:
    why = _one_line(error)
    if "gated dataset" in why:
        return _gated(address, wanted)
    if "cripts are no longer supported" in why or "trust_remote_code" in why:
        return DataError(
            f"{address}: the repository loads its data with a script, which setsup never runs; open a Parquet copy "
            f"instead, such as hf:{wanted.name}@refs%2Fconvert%2Fparquet"
        )
    if unreachable is None:
        return DataError(f"{address} cannot be loaded by datasets.load_dataset: {why}")
    if "configurations in the cache" in why or "Couldn't find cache" in why:
        return DataError(
            f"{address}: the Hugging Face Hub cannot be reached, and the cached copy cannot be opened: {why}"
        )
    return DataError(
        f"{address} cannot be loaded: the Hugging Face Hub cannot be reached ({unreachable}), and the cache of "
        "datasets has no copy; check the network, or pass a folder that save_to_disk wrote"
    )


def _gated(address: str, wanted: HubAddress) -> DataError:
    return DataError(
        f"{address} is gated: request access at https://huggingface.co/datasets/{wanted.name}, and sign in with `hf "
        "auth login`"
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_LETTERS] or type(error).__name__
