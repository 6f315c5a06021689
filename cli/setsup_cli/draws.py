"""Files of draws: ``draws.jsonl`` for replays, ``draws.npz`` for programs, ``sheet.png`` (PDF, SVG) for people.

The first line of ``draws.jsonl`` is a header: version, dataset, fingerprint of its factor table, and the sampler as
plain data. Each line after it is one step. Nothing in it depends on where the data lie but ``source``, a hint by which
a replay finds a user's own data by itself: their path, absolute and relative to the file. Whatever it leads to, and
whatever is given in its place on another machine, must have the factors that the header's fingerprint is of.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setsup.errors import DamagedFile, DataError, about_file
from setsup.files import locked, written
from setsup_cli.output_paths import free_path, is_missing_or_equal
from setsup_cli.source_location import find_place

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.opening import SourceKind
    from setsup.reports import Sheet
    from setsup.samplers import Draw, Sampler

__all__ = ["Recorded", "header", "lines", "read_draws", "write_files"]

_FORMAT = 1


def header(
    dataset: "Dataset",
    sampler: "Sampler",
    steps: int,
    table: Mapping[str, Any] | None,
    split: str | None,
    opened: Mapping[str, str | None],
) -> dict[str, Any]:
    """First line of the file."""
    import setsup

    head = {
        "setsup": setsup.__version__,
        "format": _FORMAT,
        "dataset": dataset.name,
        "rows": len(dataset.factors),
        "fingerprint": dataset.factors.fingerprint,
        "sampler": sampler.to_dict(),
        "steps": steps,
    }
    if split is not None:
        head["split"] = split
    if opened:
        head["options"] = dict(opened)
    return head if table is None else {**head, "table": dict(table)}


def write_files(
    asked: Path, head: Mapping[str, Any], draws: "Draw", sheet: "Sheet", format: str = "png", *, force: bool = False
) -> dict[str, Path]:
    """Write draws and their contact sheet: all files whole, or none of them.

    Unless `force`, a folder that has other files of draws is left as it is, and a numbered one is written.
    """
    arrays: dict[str, Any] = {"indices": draws.indices}
    arrays |= {f"inactive_{name}": codes for name, codes in draws.inactive.items()}
    arrays |= {"mask": draws.mask} if draws.mask is not None else {}
    arrays |= {"canonical": draws.canonical} if draws.canonical is not None else {}
    arrays |= {f"label_{name}": labels for name, labels in draws.pair_labels.items()}
    content = sheet.encode(format)

    def is_free(folder: Path) -> bool:
        paths = _paths(folder, format)
        return (
            is_missing_or_equal(paths["sheet"], content)
            and _are_missing_or_equal(paths["jsonl"], head, draws)
            and _arrays_are_missing_or_equal(paths["npz"], arrays)
        )

    with ExitStack() as stack:
        stack.enter_context(locked(asked))  # two processes would find the same place free
        paths = _paths(asked if force else free_path(asked, is_free), format)
        parts = {name: stack.enter_context(written(path)) for name, path in paths.items()}
        with parts["jsonl"].open("w", encoding="utf-8") as file:
            for line in (head, *lines(draws)):
                file.write(json.dumps(line, allow_nan=False) + "\n")
        np.savez(parts["npz"], allow_pickle=False, **arrays)
        parts["sheet"].write_bytes(content)
    return paths


def _paths(folder: Path, format: str) -> dict[str, Path]:
    return {"jsonl": folder / "draws.jsonl", "npz": folder / "draws.npz", "sheet": folder / f"sheet.{format}"}


def _are_missing_or_equal(path: Path, head: Mapping[str, Any], draws: "Draw") -> bool:
    """Whether a ``draws.jsonl`` is missing, or has these draws."""
    try:
        with path.open(encoding="utf-8") as file:
            wanted = (json.dumps(line, allow_nan=False) + "\n" for line in (head, *lines(draws)))
            return all(there == line for there, line in zip_longest(file, wanted))
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


def _arrays_are_missing_or_equal(path: Path, arrays: Mapping[str, Any]) -> bool:
    """Whether a ``draws.npz`` is missing, or has these arrays."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            return set(saved) == set(arrays) and all(
                np.array_equal(saved[name], array, equal_nan=array.dtype.kind == "f") for name, array in arrays.items()
            )
    except FileNotFoundError:
        return True
    except Exception:  # not a file of numpy's, or a damaged one: zipfile and numpy raise many kinds
        return False


def lines(draws: "Draw") -> Iterator[dict[str, Any]]:
    """Steps of a block as plain data, from step 0 on; a factor that a set does not fix is -1, or None."""
    for step in range(len(draws.indices)):
        draw = draws.at(step)
        line: dict[str, Any] = {"step": step, "indices": draw.indices.tolist(), "inactive": {}}
        for name, codes in draw.inactive.items():
            line["inactive"][name] = [None if code != code else code for code in codes.tolist()]
        if draw.mask is not None:
            line["mask"] = draw.mask.tolist()
        if draw.canonical is not None:
            line["canonical"] = draw.canonical.tolist()
        if draw.pair_labels:
            line["pair_labels"] = {name: labels.tolist() for name, labels in draw.pair_labels.items()}
        yield line


@dataclass(frozen=True, slots=True)
class Recorded:
    """Content of a ``draws.jsonl``.

    Attributes
    ----------
    path : Path
        The file, for messages.
    head : dict
        Its first line.
    steps : list of dict
        Its other lines.

    """

    path: Path
    head: dict[str, Any]
    steps: list[dict[str, Any]]

    @property
    def table(self) -> dict[str, Any] | None:
        """How a table of the user's own was read: ``image`` and ``kinds``; None for other datasets."""
        table: dict[str, Any] | None = self.head.get("table")
        return table

    @property
    def opened(self) -> dict[str, str | None]:
        """Options that the dataset was opened with, as words; None for a path."""
        return dict(self.head.get("options", {}))

    @property
    def has_source(self) -> bool:
        """Whether the file says where the data lay; those of benchmarks, and old ones, do not."""
        return "source" in self.head

    def find_source(self) -> "tuple[str, SourceKind]":
        """Path or address of the data, where they still are, and their kind."""
        hint: dict[str, Any] = self.head["source"]
        source = find_place(hint, self.path.absolute().parent)
        if source is None:
            locations = " and ".join(str(hint[key]) for key in ("path", "relative") if key in hint)
            where = "--table FILE" if hint["kind"] == "table" else "`setsup sample FOLDER --replay …`"
            raise DataError(
                f"{self.path} contains draws from {self.head['dataset']}, which is no longer at {locations}; pass the "
                f"new location with {where}"
            )
        return source, hint["kind"]

    def find_index(self) -> str | None:
        """Index of shards, where one was given and still is there."""
        return self._find_option("index")

    def _find_option(self, name: str) -> str | None:
        hint = self.head.get("source", {}).get("options", {}).get(name)
        return None if hint is None else find_place(hint, self.path.absolute().parent)

    def opening(self, given: Sequence[str]) -> list[str]:
        """Words of ``--option`` that open the dataset again."""
        named: dict[str, str] = {}
        for word in given:
            name = word.partition("=")[0]
            if name in named:
                raise DataError(f"--option {name}=… is specified twice; specify it once")
            named[name] = word
        words = []
        for name, value in self.opened.items():
            if value is None and name not in named and (location := self._find_option(name)) is not None:
                named[name] = f"{name}={location}"
            if value is None and name not in named:
                raise DataError(f"{self.path} was drawn with a path as --option {name}=…; specify this option again")
            words.append(named.pop(name) if value is None else f"{name}={value}")
        if named:
            raise DataError(f"{self.path} records how the dataset was opened; omit --option {' '.join(named.values())}")
        return words

    def check_source(self, source: Path | str | None, kind: "SourceKind | None") -> None:
        """Refuse a source that is another dataset than the file's, or a missing one that must be given."""
        name, of_table = self.head["dataset"], self.table is not None
        if source is None:
            if of_table:
                raise DataError(
                    f"{self.path} contains draws from the table {name}; pass the location of the table with "
                    "--table FILE"
                )
            from setsup.datasets import names

            if name not in names():
                raise DataError(
                    f"{self.path} contains draws from {name}; pass the location of the data: `setsup sample FOLDER "
                    "--replay …`"
                )
        elif (kind == "table" and not of_table) or (kind == "benchmark" and (of_table or source != name)):
            # of other sources the factors tell whether they are the dataset
            raise DataError(f"{self.path} contains draws from {name}, not from {source}; omit {source}")

    def sampler(self, dataset: "Dataset") -> "Sampler":
        """Make the sampler of the file again."""
        from setsup.samplers import from_dict

        if not dataset.factors.has_fingerprint(self.head["fingerprint"]):
            raise DataError(
                f"{self.path} contains draws from {self.head['dataset']} with {self.head['rows']:,} rows and the "
                f"fingerprint {self.head['fingerprint']}, but {dataset.name} has {len(dataset.factors):,} rows "
                f"and the fingerprint {dataset.factors.fingerprint}; use the original files"
            )
        return from_dict(self.head["sampler"], dataset.factors)

    def draws(self, sampler: "Sampler") -> "Draw":
        """Draw the steps again and compare; a file of a header alone is drawn without comparison."""
        draws = sampler.block(0, self.head["steps"])
        for line, recorded in zip(lines(draws), self.steps, strict=False):
            # through JSON, so that numbers are compared in the form in which they stand in the file
            if json.loads(json.dumps(line)) != recorded:
                raise DataError(
                    f"{self.path}: step {line['step']} differs from the draw of this version of setsup; the file was "
                    f"changed, or was written by another version ({self.head['setsup']}); draw the steps again, or "
                    "use that version"
                )
        return draws


def read_draws(path: Path) -> Recorded:
    """Read a ``draws.jsonl``."""
    with about_file(path):
        return _read(path)


def _read(path: Path) -> Recorded:
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise DamagedFile.unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} could not be parsed as draws.jsonl, or is truncated: {error}") from error
    head = records[0] if records else None
    expected = {
        "setsup": str,
        "format": int,
        "dataset": str,
        "rows": int,
        "fingerprint": str,
        "sampler": dict,
        "steps": int,
    }
    if not isinstance(head, dict) or any(not isinstance(head.get(key), kind) for key, kind in expected.items()):
        raise DataError(f"{path}, line 1: the header must contain {', '.join(expected)}, as `setsup sample` writes it")
    table = head.get("table", {"image": None, "kinds": {}})
    if not isinstance(table, dict) or table.keys() != {"image", "kinds"} or not isinstance(table["kinds"], dict):
        raise DataError(f"{path}, line 1: table must contain image and kinds, not {table!r}")
    if not isinstance(head.get("split", ""), str):
        raise DataError(f"{path}, line 1: split must be a string, not {head['split']!r}")
    opened = head.get("options", {})
    if not isinstance(opened, dict) or not all(isinstance(value, str | None) for value in opened.values()):
        raise DataError(f"{path}, line 1: options must map names to strings, not {opened!r}")
    if "source" in head:
        _check_hint(path, head["source"])
    if head["format"] != _FORMAT:
        raise DataError(
            f"{path} has format {head['format']}, but this version reads format {_FORMAT}; use setsup {head['setsup']}"
        )
    if head["steps"] < 1 or (len(records) > 1 and len(records) - 1 != head["steps"]):
        raise DataError(f"{path} is truncated: it has {len(records) - 1} of {head['steps']} steps; draw them again")
    return Recorded(path, head, records[1:])


def _check_hint(path: Path, hint: Any) -> None:
    """Refuse a hint that :func:`setsup_cli.source_location.source_hint` does not write."""
    from setsup.opening import KINDS

    options = hint.get("options", {}) if isinstance(hint, dict) else None
    if (
        not isinstance(options, dict)
        or hint.get("kind") not in KINDS
        or not all(map(_is_place, [hint, *options.values()]))
    ):
        raise DataError(f"{path}, line 1: source must contain a kind and a path, not {hint!r}")


def _is_place(hint: Any) -> bool:
    return isinstance(hint, dict) and isinstance(hint.get("path"), str) and isinstance(hint.get("relative", ""), str)
