"""A small In-Shop benchmark as it is given out: ``Img`` and ``Eval``, with the number of images above the list."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "view"

VIEWS = ("1_front", "2_side", "3_back", "4_full", "7_additional")


def lines() -> list[tuple[str, str, str]]:
    """Path, piece and part of each image."""
    found = []
    for piece in range(1, 9):
        gender, kind = ("WOMEN", "Dresses") if piece % 2 else ("MEN", "Tees_Tanks")
        for shot, view in enumerate(VIEWS):
            part = "train" if piece < 5 else ("query", "gallery")[shot % 2]
            found.append((f"img/{gender}/{kind}/id_{piece:08}/0{piece % 3 + 1}_{view}.jpg", f"id_{piece:08}", part))
    return found


def write(folder: Path) -> None:
    """Write both folders."""
    rows = lines()
    text = [str(len(rows)), "image_name item_id evaluation_status"]
    text += [f"{path:<68} {item} {part}" for path, item, part in rows]
    images = {f"Img/{path}": encoded(drawn(0, number, number, (64, 88))) for number, (path, _, _) in enumerate(rows)}
    put(folder, {"Eval/list_eval_partition.txt": "\n".join(text).encode(), **images})
