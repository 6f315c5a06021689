"""The catalogue: as it is documented, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webdataset.tariterators import base_plus_ext

from setsup.datasets.dataset import Modality
from setsup.errors import DataError
from setsup.factors import Factor, Kind
from setsup.shards.layout import CRC32C, HEADER, Catalogue, Member, Shard, member_name, parse_catalogue, split_name
from setsup.shards.opening import open_shards
from tests.fuzzing import survives
from tests.shards.handmade import small_set

DIGEST = "0123456789abcdef" * 4

WHOLE: dict[str, Any] = {
    "setsup": "1.2",
    "format": 1,
    "name": "it",
    "plan": DIGEST,
    "check": "crc32c",
    "about": {"licence": "MIT"},
    "factors": [{"name": "a", "kind": "nominal", "levels": ["x", "y"]}],
    "members": {"image": {"extension": "png", "shape": [4, None, 3], "dtype": "uint8", "unit": "", "color": "srgb"}},
    "index": ["index.parquet", 5, 100, DIGEST],
    "shards": [["data-00000.tar", 3, 2048, DIGEST], ["train/data-00001.tar", 2, 1024, DIGEST]],
}


def read(**changes: Any) -> Catalogue:
    return parse_catalogue(json.dumps(WHOLE | changes).encode(), "there/shards.json")


def test_what_stands_there_is_read() -> None:
    found = read()
    assert (found.name, found.rows, found.check, found.plan, found.setsup) == ("it", 5, CRC32C, DIGEST, "1.2")
    assert found.factors == (Factor("a", Kind.NOMINAL, ("x", "y")),)
    assert found.modalities == {"image": Modality((4, None, 3), "uint8", color="srgb")}
    assert found.members["image"].format == "png"
    assert found.about == {"licence": "MIT"}
    assert found.shards[1] == Shard("train/data-00001.tar", 2, 1024, DIGEST)
    assert found.index == Shard("index.parquet", 5, 100, DIGEST)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.from_regex(r"[a-zA-Z0-9é_-]{1,5}(/[a-z0-9 .]{0,3}[a-z])?\.tar", fullmatch=True)
COUNTS = st.integers(0, 1 << 40)
SHARDS = st.lists(st.builds(Shard, NAMES, COUNTS, COUNTS, st.just(DIGEST)), unique_by=lambda one: one.name, max_size=4)
MODALITIES = st.builds(
    Modality,
    st.lists(st.none() | st.integers(1, 999), max_size=4).map(tuple),
    st.sampled_from(["uint8", "float32", "bool", "int64"]),
    st.sampled_from(["", "m"]),
    st.sampled_from(["", "srgb"]),
)
MEMBERS = st.dictionaries(
    TEXTS, st.builds(Member, MODALITIES, st.from_regex(r"([a-z0-9_]{1,3}\.)?(png|npy)", fullmatch=True)), max_size=3
)
FACTORS = st.lists(
    st.builds(Factor, TEXTS.filter(bool), st.just(Kind.NOMINAL), st.lists(TEXTS, min_size=1, max_size=3, unique=True)),
    unique_by=lambda one: one.name,
    max_size=3,
).map(tuple)


@pytest.mark.long("large or genuine files")
@given(SHARDS, MEMBERS, FACTORS, st.dictionaries(TEXTS, TEXTS, max_size=3), st.sampled_from([CRC32C, HEADER]))
def test_written_and_read_again(shards: list[Shard], members: Any, factors: Any, about: Any, check: str) -> None:
    index = Shard("index.parquet", sum(one.rows for one in shards), 7, DIGEST)
    whole = Catalogue("it", factors, members, tuple(shards), index, check, "", "1.0", about)
    written = whole.to_json()
    assert parse_catalogue(written.encode(), "it") == whole
    assert json.loads(written)["shards"] == [[one.name, one.rows, one.size, one.digest] for one in shards]
    # a line a shard
    assert sum(line.startswith("  [") for line in written.splitlines()) >= len(shards)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"format": 2, "setsup": "9.1"},
            "has format 2, written by setsup 9.1, but this version reads format 1; update",
        ),
        ({"shards": [["../data.tar", 5, 1, DIGEST]]}, r"shards\[0\] must be a path inside the dataset folder"),
        ({"shards": [["/etc/passwd", 5, 1, DIGEST]]}, r"shards\[0\] must be a path inside"),
        ({"shards": [["a/../../b.tar", 5, 1, DIGEST]]}, r"shards\[0\] must be a path inside"),
        ({"shards": [["~/b.tar", 5, 1, DIGEST]]}, r"shards\[0\] must be a path inside"),
        ({"shards": [["a\n.tar", 5, 1, DIGEST]]}, r"shards\[0\] must be a path inside"),
        ({"shards": [["http://x/a.tar", 5, 1, DIGEST]]}, r"shards\[0\] must be a path inside"),
        ({"index": ["../index.parquet", 5, 100, DIGEST]}, "index must be a path inside"),
        ({"shards": [["a.tar", 2, 1, DIGEST], ["a.tar", 3, 1, DIGEST]]}, "shards with distinct names"),
        ({"shards": [["a.tar", 4, 1, DIGEST]]}, "the rows of its shards and of its index differ"),
        ({"shards": [["a.tar", -1, 1, DIGEST]]}, "an integer"),
        ({"shards": [["a.tar", 5, 1, "x"]]}, "64 lower-case hexadecimal digits"),
        ({"shards": [["a.tar", 5, 1]]}, r"\[name, rows, bytes, digest\]"),
        ({"factors": [{"name": "a", "kind": "colour"}]}, r"factors\[0\] must be a factor"),
        ({"factors": [*WHOLE["factors"], *WHOLE["factors"]]}, "factors with distinct names"),
        ({"check": "md5"}, "check must be one of crc32c, header"),
        ({"plan": "x"}, "plan must be 64"),
        ({"members": {"image": WHOLE["members"]["image"] | {"extension": "../png"}}}, "extension must be letters"),
        ({"members": {"image": WHOLE["members"]["image"] | {"shape": [0]}}}, "shape must be a list of"),
        ({"members": {"image": WHOLE["members"]["image"] | {"dtype": "x"}}}, "a dtype must be|a modality"),
        ({"members": {"image": WHOLE["members"]["image"] | {"more": 1}}}, "unknown key 'members.image.more'"),
        ({"about": {"licence": 1}}, "about must be a mapping of names to strings"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=rf"^there/shards\.json.*({words})"):
        read(**changes)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"null", b'{"format": 1}'])
def test_what_is_no_catalogue(content: bytes) -> None:
    with pytest.raises(DataError, match=r"^there/shards\.json"):
        parse_catalogue(content, "there/shards.json")


@pytest.mark.long("fuzzing")
def test_a_damaged_catalogue_is_refused_or_gives_the_right_arrays(tmp_path: Path) -> None:
    folder, images, depths = small_set(tmp_path / "set")
    file = folder / "shards.json"
    values = open_shards(folder).factors.values("shape").tolist()

    def use(content: bytes) -> None:
        file.write_bytes(content)
        dataset = open_shards(folder)
        for name, expected in (("image", images), ("depth", depths)):
            if name in dataset.modalities:  # a name may be damaged, too
                found = dataset.fetch(range(7), [name])[name]
                assert found.tobytes() == expected.tobytes()
        if "shape" in dataset.factors:
            assert dataset.factors.values("shape").tolist() in (values, [one.upper() for one in values])
        dataset.verify()

    assert survives(file.read_bytes(), use, 150, head=400, slack=16 << 20) > 100


@given(st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,4}", fullmatch=True), min_size=1, max_size=3), st.data())
def test_keys_are_told_apart_as_webdataset_does(folders: list[str], data: st.DataObject) -> None:
    extension = data.draw(st.from_regex(r"[A-Za-z0-9]{1,4}(\.[A-Za-z0-9]{1,4})?", fullmatch=True))
    name = "/".join(folders) + "." + extension
    key, found = base_plus_ext(name)
    assert split_name(name) == (key, found.lower()) == ("/".join(folders), extension.lower())
    assert member_name(key, found) == name


def test_a_dot_in_a_folder_is_of_the_key() -> None:
    assert split_name("v1.2/7.left.png") == base_plus_ext("v1.2/7.left.png") == ("v1.2/7", "left.png")
