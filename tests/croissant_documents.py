"""Small Croissant descriptions, written beside their files."""

import json

from PIL import Image

FILES = {"@type": "cr:FileSet", "@id": "files", "includes": "*.png", "encodingFormat": "image/png"}


def write_image(path, grey):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (4, 3), grey).save(path)


def file(name, url=None, kind="text/csv", **more):
    return {"@type": "cr:FileObject", "@id": name, "contentUrl": url or name, "encodingFormat": kind, **more}


def content(files="files"):
    source = {"fileSet": {"@id": files}, "extract": {"fileProperty": "content"}}
    return {"@id": "r/image", "name": "image", "dataType": "sc:ImageObject", "source": source}


def named(name, regex, property="filename", **more):
    """A field of the names of files."""
    extract = {"extract": {"fileProperty": property}, "transform": {"regex": regex}}
    return {
        "@id": f"r/{name}",
        "name": name,
        "dataType": "sc:Text",
        "source": {"fileSet": {"@id": "files"}, **extract},
    } | more


def column(name, table, of=None, kind="sc:Text", transform=None, **more):
    source = {"fileObject": {"@id": table}, "extract": {"column": of or name}}
    source |= {"transform": transform} if transform else {}
    return {"@id": f"r/{name}", "name": name, "dataType": kind, "source": source, **more}


def reference(table, name):
    return {"fileObject": {"@id": table}, "extract": {"column": name}}


def at_path(name, path, file="x.json"):
    return {"@id": f"r/{name}", "name": name, "source": {"fileObject": {"@id": file}, "extract": {"jsonPath": path}}}


def write(folder, distribution, fields, others=(), name="croissant.json"):
    """Write a description with the record set ``r``; returns its path."""
    document = {
        "@context": {},
        "@type": "sc:Dataset",
        "name": "mine",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "distribution": distribution,
        "recordSet": [{"@type": "cr:RecordSet", "@id": "r", "field": fields}, *others],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(document), "utf-8")
    return folder / name
