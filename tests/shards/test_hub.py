"""Shards pushed to the Hub by ``huggingface_hub``, and opened from there, on a server of this machine.

The real Hub was not tried: ``tests/hub_server.py`` answers the calls that the libraries make.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setsup
from tests.hub_server import Hub, serve
from tests.sharded import Varied

pytest.importorskip("datasets")
pytestmark = pytest.mark.long("worker processes")

PUSH = """
import huggingface_hub
huggingface_hub.create_repo("ann/shapes", repo_type="dataset", exist_ok=True)
huggingface_hub.upload_folder(repo_id="ann/shapes", repo_type="dataset", folder_path={folder!r})
"""

COMPARE = """
import json, sys
import numpy as np
import setsup
ours = setsup.open({folder!r})
theirs = setsup.open({address!r})
assert theirs.factors.factors == ours.factors.factors
assert theirs.factors.fingerprint == ours.factors.fingerprint
assert theirs.modalities == ours.modalities
for name, kind in ours.modalities.items():
    for row in range(len(ours)):
        assert np.array_equal(theirs.fetch(row, [name])[name], ours.fetch(row, [name])[name])
print(type(theirs).__name__, len(theirs))
"""

LOAD = """
import json
import datasets
import numpy as np
rows = datasets.load_dataset("ann/shapes", split="train")
def plain(value):
    return np.asarray(value).tolist() if hasattr(value, "convert") else value
with open({out!r}, "w") as file:
    json.dump([{{name: plain(value) for name, value in row.items()}} for row in rows], file)
"""


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with serve() as found:
        yield found


@pytest.fixture(scope="module")
def pushed(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of shards that was pushed."""
    folder = tmp_path_factory.mktemp("pushed") / "shapes"
    setsup.write_shards(Varied(20), folder, per_shard=7)
    run(PUSH.format(folder=str(folder)), hub, folder.parent)
    return folder


def run(code: str, hub: Hub, home: Path, **more: str) -> str:
    """Run code in a process that knows only this Hub."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING_FACE"))}
    given = {"HF_ENDPOINT": hub.address, "HF_HOME": str(home / "hf"), "HF_TOKEN": "hf_none", "HF_HUB_DISABLE_XET": "1"}
    given |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1", "SETSUP_CACHE": str(home / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **given, **more},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_the_repository_has_the_folder(hub: Hub, pushed: Path) -> None:
    commit, files = hub.files("ann/shapes", "main") or ("", {})
    assert len(commit) == 40
    written = {str(path.relative_to(pushed)): path.read_bytes() for path in pushed.rglob("*") if path.is_file()}
    assert {name: files[name] for name in written} == written
    assert set(files) - set(written) <= {".gitattributes"}
    calls = {request.partition(" ")[0] + " " + request.rpartition("/")[2] for request in hub.requests}
    assert {"POST create", "POST main", "POST batch", "POST verify"} <= calls


def test_load_dataset_has_the_rows(hub: Hub, pushed: Path, tmp_path: Path) -> None:
    run(LOAD.format(out=str(tmp_path / "rows.json")), hub, tmp_path)
    rows: list[dict[str, Any]] = json.loads((tmp_path / "rows.json").read_text())
    ours = setsup.open(pushed)
    assert len(rows) == len(ours)
    names = {"image": "png", "depth": "depth.npy", "mask": "mask.png", "weight": "weight.npy"}
    for row, one in enumerate(rows):
        assert one["__key__"] == ours.keys([row])[0]
        assert {name: one["json"][name] for name in ours.factors.names} == pytest.approx(
            ours.factors.row(row), nan_ok=True
        )
        for name, column in names.items():
            mine = ours.fetch(row, [name])[name]
            assert np.array_equal(np.asarray(one[column]).reshape(mine.shape), mine)


def test_setsup_opens_it_without_loss(hub: Hub, pushed: Path, tmp_path: Path) -> None:
    commit, _ = hub.files("ann/shapes", "main") or ("", {})
    for address in ("hf:ann/shapes", f"hf:ann/shapes@{commit}"):
        assert run(COMPARE.format(folder=str(pushed), address=address), hub, tmp_path) == "ShardedDataset 20"
    # from the cache, without the Hub
    asked = len(hub.requests)
    code = COMPARE.format(folder=str(pushed), address="hf:ann/shapes")
    assert run(code, hub, tmp_path, HF_HUB_OFFLINE="1").startswith("ShardedDataset")
    assert len(hub.requests) == asked


def test_shards_are_read_in_place(hub: Hub, pushed: Path, tmp_path: Path) -> None:
    code = COMPARE.format(folder=str(pushed), address="hf://datasets/ann/shapes")
    assert run(code, hub, tmp_path).startswith("ShardedDataset")


def test_options_that_shards_do_not_have(hub: Hub, pushed: Path, tmp_path: Path) -> None:
    code = """
import setsup
try:
    setsup.open("hf:ann/shapes", kinds={"hue": "nominal"})
except setsup.errors.DataError as error:
    print(error)
"""
    sentence = run(code, hub, tmp_path)
    assert (
        sentence == "hf:ann/shapes has shards that setsup wrote, whose images and factors are known; leave out kinds="
    )
