"""A second copy of what the tars of a set do not hold: from it and the tars all other files can be restored.

Convention
----------
``backup.parquet`` has one column, ``__source_row__`` of the index, and in its metadata the texts of ``shards.json`` and
of ``README.md``. Readers of shards do not need it.
"""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.files.archives.listing import as_numpy
from setsup.shards.index import GROUP, SOURCE_ROW
from setsup.shards.layout import BACKUP, Catalogue, parse_catalogue

__all__ = ["Backup", "read_backup", "write_backup"]

_KEY = b"setsup"


@dataclass(frozen=True)
class Backup:
    """What a second copy holds.

    Attributes
    ----------
    catalogue : Catalogue
        As ``shards.json`` has it.
    card : str
        Text of ``README.md``.
    source_rows : (n,) int64
        Rows of the dataset that was written.

    """

    catalogue: Catalogue
    card: str
    source_rows: npt.NDArray[np.int64]


def write_backup(path: Path, index: Path, catalogue: Catalogue, card: str) -> None:
    """Write the second copy of a set."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = json.dumps({"catalogue": catalogue.to_json(), "card": card}, ensure_ascii=False)
    schema = pa.schema([pa.field(SOURCE_ROW, pa.int64())], metadata={_KEY: about.encode()})
    how: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True}
    encodings = {SOURCE_ROW: "DELTA_BINARY_PACKED"}
    with pq.ParquetFile(index) as file, pq.ParquetWriter(path, schema, column_encoding=encodings, **how) as writer:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=[SOURCE_ROW]).column(SOURCE_ROW)
            writer.write_table(pa.table([rows], schema=schema), GROUP)


def read_backup(path: Path) -> Backup:
    """Read the second copy of a set."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            texts = file.metadata.metadata or {}
            # Parquet keeps the texts twice, and no checksum of either
            arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(texts[b"ARROW:schema"])))
            if (arrow.metadata or {})[_KEY] != texts[_KEY]:
                raise ValueError("its two copies of the catalogue and the card differ")
            about = json.loads(texts[_KEY])
            rows = np.concatenate(
                [np.zeros(0, np.int64), *map(as_numpy, file.read(columns=[SOURCE_ROW]).column(0).chunks)]
            )
        catalogue, card = (
            parse_catalogue(about["catalogue"].encode(), f"{path}: its copy of the catalogue"),
            str(about["card"]),
        )
        if rows.dtype != np.int64 or len(rows) != catalogue.rows:
            raise ValueError(f"it has {len(rows):,} rows, not {catalogue.rows:,}")
    except DataError:
        raise
    except Exception as error:  # Arrow's readers raise whatever they come across
        raise DataError(f"{path} is damaged, or not a {BACKUP}: {' '.join(str(error).split())[:200]}") from None
    return Backup(catalogue, card, rows)
