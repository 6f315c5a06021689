"""Files by which the content of a folder, or of an archive of one, is recognized."""

from typing import Literal

__all__ = ["MARKS"]

MARKS: dict[str, Literal["rendered", "shards", "huggingface"]] = {
    "rendered.json": "rendered",
    "shards.json": "shards",
    ".setsup": "shards",  # which are not finished
    "dataset_info.json": "huggingface",
    "dataset_dict.json": "huggingface",
}
