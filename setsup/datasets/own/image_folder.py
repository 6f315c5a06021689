"""A user's own data: images in folders or an archive, with factors in their paths."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setsup.checks import check_arguments
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.formats.image_formats import ending_pattern, image_endings, missing_plugins
from setsup.datasets.images import check_size
from setsup.datasets.own.beside import list_tables, name_some, without_outputs
from setsup.datasets.own.contents import ContentDataset
from setsup.datasets.own.image_archive import check_image_archive, one_tar
from setsup.datasets.own.image_metadata.opening import open_metadata
from setsup.datasets.own.path_factors import parent_folders, read_fields
from setsup.datasets.own.path_pattern import PathPattern, suggest_pattern
from setsup.datasets.own.table import ImageTable
from setsup.errors import DataError, advice
from setsup.factors import FactorTable, Kind
from setsup.files import open_members
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.names import shown
from setsup.files.expand_user import expanded
from setsup.files.lfs import is_pointer, pointer_error

__all__ = ["open_images"]

_NOT_HIDDEN = "(?:[^/.][^/]*/)*[^/.][^/]*"
_log = logging.getLogger("setsup")


def open_images(
    folder: Path | str,
    pattern: str | None = None,
    size: tuple[int, int] | None = None,
    relist: bool = False,
    kinds: Mapping[str, Kind | str] | None = None,
) -> ImageTable | ContentDataset:
    r"""Open a folder of images, or a zip or tar of one, as a dataset with parts of the paths as factors.

    Without a pattern, the only factor is ``folder``. A pattern has fields for the parts that differ, such as
    ``"{class}/..."``, ``"{domain}/{class}/..."`` or ``"{subject}/{session}_{yaw:d}.jpg"``:

    ===============  ===================================================  ==========
    in the pattern   stands for                                           factor
    ===============  ===================================================  ==========
    ``{name}``       text without ``/``                                   nominal
    ``{name:d}``     an integer: ``-30``, ``+5``, ``007`` is 7            ordinal
    ``{name:f}``     a number: ``0.5``, ``-3``, ``1e-3``                  continuous
    ``{}``           text without ``/`` (``{:d}``, ``{:f}``: a number)    none
    ``*``            any part of one name                                 none
    ``...``, ``**``  folders, or at the end the rest of the path          none
    ``{{``, ``}}``   braces
    ===============  ===================================================  ==========

    The pattern must match the whole path relative to the folder. If all files of an archive are in one folder, paths
    are relative to that folder, unless the pattern starts with its name. The file extension may be omitted, or be
    ``.*``, and is not part of a field; ``.jpg`` also matches ``.JPG``. Fields are as short as possible, from the left:
    ``{a}_{b}`` reads ``x_y_z`` as ``x`` and ``y_z``, with a warning that the pattern is ambiguous. Hidden files and
    folders, whose names begin with a dot, are left out, and so are PNGs that setsup wrote, such as contact sheets,
    which it recognizes by a mark in the file. Without a pattern, tables ``metadata.csv``, ``metadata.jsonl`` and
    ``metadata.parquet`` with a column ``file_name``, ``*_file_name``, ``file_names`` or ``*_file_names`` give the rows,
    their images and factors, as ``load_dataset("imagefolder")`` of Hugging Face ``datasets`` reads them, also from zips
    in the folder, with the factor ``split`` where names of folders or files say it. Other tables are not read; a
    warning lists them.

    A folder of fewer than 10,000 files is listed each time. The list of a larger folder, or of an archive, is cached
    until the modification time of any folder in it, or the archive's time or size, changes. Rows are sorted by path.

    Parameters
    ----------
    folder : Path or str
        The folder or archive.
    pattern : str, optional
        Pattern of the paths. Images that do not match are left out, with a warning that counts them.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.
    relist : bool
        List the files again, and replace the cached list: for file systems that do not update modification times of
        folders.
    kinds : mapping of str to Kind, optional
        Kinds of factors, in place of those above: ``{"yaw": "cyclic", "light": "ordinal:low,mid,high"}``.

    Returns
    -------
    ImageTable or ContentDataset
        The latter with metadata. Without a pattern and metadata, the factor ``folder`` is the path, relative to
        `folder`, of the folder that contains the image, such as ``"train/cats"``, or ``"."``.

    Raises
    ------
    DataError
        When the folder cannot be read or contains no images; when all images are in one folder and no pattern is given;
        when the pattern is invalid or matches no image; when an image is damaged.
    FactorError
        When ``kinds`` contains a name that is not a factor, or a kind that the values cannot have.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, grey in [("ann/left_-30.png", 10), ("ann/left_5.png", 20), ("bob/left_5.png", 200)]:
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     Image.new("L", (4, 3), grey).save(folder / name)
    >>> faces = open_images(folder, "{subject}/{light}_{yaw:d}.png")
    >>> faces.factors, faces.factors["yaw"].levels
    (FactorTable(3 rows: subject 2, light 1, yaw 2), (-30, 5))
    >>> open_images(folder).factors.values("folder").tolist()
    ['ann', 'ann', 'bob']

    """
    check_arguments(open_images, locals(), DataError)
    import pyarrow as pa

    path = expanded(folder)
    size = check_size(size)
    parsed = None if pattern is None else PathPattern.of(pattern)
    if path.suffix.lower() == ".tar" and path.is_file() and not path.stat().st_size:
        raise one_tar(str(path))
    members = open_members(path, relist=relist, hidden=True)
    if parsed is None:
        described = open_metadata(_name(path), members, size, kinds, relist)
        if described is not None:
            return described
    if parsed is None and not path.is_dir():  # a pattern says that images are meant
        check_image_archive(path, members.names)
    if parsed is not None:
        members = _below_top(members, parsed)
    places, _ = members.matching(f"{_NOT_HIDDEN}{ending_pattern()}")
    tables = list_tables(members, path)
    _report_left_out(members, path, num_images=len(places), tables=tables)
    places = without_outputs(members, places, _hint(tables))
    names = members.names if len(places) == len(members) else members.names.take(places)
    columns: dict[str, Any]
    if parsed is None:
        columns = {"folder": parent_folders(names)}
        if len(columns["folder"].unique()) < 2:
            if is_pointer(members.read(int(places[0]))):
                raise pointer_error(members.label(int(places[0])))
            raise _one_folder(path, names[0].as_py(), tables)
    else:
        matching, columns = read_fields(parsed, names, str(path))
        places = places[matching]
    if tables:
        _log.warning(
            "%s: factors are parsed from paths, not read from %s; %s", path, name_some(tables), _other_way(tables)
        )
    table = FactorTable.from_arrow(pa.table(columns), kinds=kinds)
    return ImageTable(_name(path), table, MemberImages(members, places), size)


def _below_top(members: MemberIndex, pattern: PathPattern) -> MemberIndex:
    """Leave out the folder that contains all files of an archive, as many programs create it."""
    if not len(members) or members.path(0) is not None:
        return members
    first, last = (members.names[row].as_py().partition("/") for row in (0, len(members) - 1))
    # names are sorted: what the first and the last begin with, all do
    nested = first[1] and last[1] and first[0] == last[0] != pattern.top
    return members.under(first[0]) if nested else members


def _name(path: Path) -> str:
    """Name of the dataset: that of the folder, or of the archive without its ending."""
    if path.name in ("", ".."):
        path = path.resolve()
    return path.stem or str(path)


def _other_way(tables: list[str]) -> str:
    """Describe how to read a table; a table in an archive cannot be opened by itself."""
    if not os.path.exists(tables[0]):
        return "unpack the archive and open the table to use its columns as factors"
    return f"setsup.open({tables[0]!r}) opens the images listed in a table, with its columns as factors"


def _hint(tables: list[str]) -> str:
    return f"; {_other_way(tables)}" if tables else ""


def _report_left_out(members: MemberIndex, path: Path, num_images: int, tables: list[str]) -> None:
    """Report images left out because they are hidden or Pillow cannot decode them; raise an error if none remain."""
    if num_images == len(members) > 0:
        return
    label = shown(str(path))
    if not len(members):
        raise DataError(f"{label} contains no files; pass the folder or archive that contains the images")
    missing = missing_plugins(members.names)
    hidden = len(members.matching(f"(?s:.*){ending_pattern()}")[0]) - num_images
    if num_images:
        if missing:
            _log.warning("%s: %s; left out", label, missing)
        if hidden:
            _log.info(
                "%s: skipping %s hidden images, whose file or folder name begins with a dot", label, f"{hidden:,}"
            )
        return
    among = f"none of its {len(members):,} files ends with {', '.join(image_endings())}"
    if hidden:
        among = f"all images ({hidden:,}) are hidden, because their file or folder names begin with a dot"
    raise DataError(f"{label} contains no images: {missing or among}{_hint(tables)}")


def _one_folder(path: Path, example: str, tables: list[str]) -> DataError:
    suggested = suggest_pattern(example.rpartition("/")[2])
    folder = "" if "/" not in example else ".../"
    return DataError(
        f"all images of {shown(str(path))} are in one folder, so no factor can be derived from folders; pass a pattern "
        f"for the file names, such as {folder + suggested!r} ({advice('pattern=', '--pattern')}), sort the images into "
        "folders, list them in a CSV file with a column of paths and one column per factor, or, for pixel pairs, add "
        f"homographies (docs/correspondences.md){_hint(tables)}"
    )
