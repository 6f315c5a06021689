"""Results of a simulation as lines of a file, each kept as soon as it is known."""

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from setsup.errors import DataError
from setsup.files import disk_errors, written

__all__ = ["CELLS", "Cell", "read_cells", "write_cells"]

CELLS = "simulation.jsonl"


@dataclass(frozen=True, slots=True)
class Cell:
    """One size and number of dimensions, with what :class:`~setsup_papers.abc.simulation.Simulation` has of it."""

    size: int
    dimensions: int
    temperature: float
    loss: float
    error: float
    draws: int


def write_cells(file: Path, settings: dict[str, Any], cells: dict[tuple[int, int], Cell]) -> None:
    """Write settings and results atomically."""
    lines = [settings, *(asdict(cell) for cell in cells.values())]
    with written(file) as part:
        part.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def read_cells(file: Path, settings: dict[str, Any]) -> dict[tuple[int, int], Cell]:
    """Results that a file holds; a last line without an end was cut off, and its result is not known."""
    try:
        with disk_errors(file):
            *lines, _ = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    values = [_value(line, f"{file}, line {number}") for number, line in enumerate(lines, 1)]
    if values and values[0] != settings:
        raise DataError(f"{file} contains a simulation of {values[0]}, not of {settings}; choose another folder")
    cells = [_check_cell(value, f"{file}, line {number}") for number, value in enumerate(values[1:], 2)]
    return {(cell.size, cell.dimensions): cell for cell in cells}


def _value(line: bytes, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is damaged; remove the file to simulate again") from error


def _check_cell(value: Any, where: str) -> Cell:
    """One result; only what `write_cells` may have written."""
    types = {field.name: field.type for field in fields(Cell)}
    known = isinstance(value, dict) and {name: type(of) for name, of in value.items()} == types
    if not known or not all(0 <= number < math.inf for number in value.values()):
        raise DataError(f"{where} is not the result of a simulation; remove the file to simulate again")
    return Cell(**value)
