"""A small Hugging Face Hub on this machine, reached through ``HF_ENDPOINT``: the calls of ``huggingface_hub`` alone.

It creates repositories, takes files by preupload, Git LFS (batch, upload, verification of size and SHA-256) and commit,
and gives them back: info, tree, paths, refs, and files by revision with ``ETag``, ``X-Repo-Commit`` and ranges. What
the real Hub does beyond these calls, such as Xet storage, permissions and its viewer, is not here.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LFS = re.compile(r".*[.](tar|parquet|arrow|zip|png|jpg|npy)")
REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"


def git_digest(content: bytes) -> str:
    """Name of a blob in Git."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """Repositories by name: commits in order, each the files by path."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, dict[str, bytes]]] = {}
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.address = ""

    def files(self, repo: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """Commit and files of a branch or commit."""
        commits = self.repositories.get(repo, {})
        commit = [*commits][-1] if revision == "main" and commits else revision
        return (commit, commits[commit]) if commit in commits else None

    def commit(self, repo: str, lines: list[dict[str, Any]]) -> str:
        """Add a commit of the operations that a client sends."""
        _, files = self.files(repo, "main") or ("", {})
        files = dict(files)
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                assert value["encoding"] == "base64"
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.objects[value["oid"]]
                assert len(files[value["path"]]) == value["size"]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
            else:
                assert line["key"] == "header"
        commit = hashlib.sha1(json.dumps([repo, len(self.repositories[repo])]).encode()).hexdigest()
        self.repositories[repo][commit] = files
        return commit


def entry(path: str, content: bytes) -> dict[str, Any]:
    """A file in a tree."""
    found: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": git_digest(content)}
    if LFS.fullmatch(path):
        digest = hashlib.sha256(content).hexdigest()
        found["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 130}
    return found


def tree(files: dict[str, bytes], folder: str, recursive: bool) -> list[dict[str, Any]]:
    """Files and folders in a folder."""
    below = f"{folder}/" if folder else ""
    found, folders = [], set()
    for path, content in files.items():
        if not path.startswith(below):
            continue
        parts = path[len(below) :].split("/")
        folders |= {below + "/".join(parts[: end + 1]) for end in range(len(parts) - 1)}
        if recursive or len(parts) == 1:
            found.append(entry(path, content))
    shown = folders if recursive else {one for one in folders if "/" not in one[len(below) :]}
    return [*({"type": "directory", "path": one, "size": 0, "oid": "0" * 40} for one in sorted(shown)), *found]


class Handler(BaseHTTPRequestHandler):
    """Answers of the Hub."""

    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

    def log_message(self, format: str, *args: Any) -> None:
        self.hub.requests.append(f"{self.command} {urlsplit(self.path).path}")

    def answer(self, content: Any, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, code: str) -> None:
        self.answer({"error": code}, 404, X_Error_Code=code)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def do_POST(self) -> None:
        path, body, hub = unquote(urlsplit(self.path).path), self.body(), self.hub
        if path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted.get('organization') or 'ann'}/{wanted['name']}"
            assert wanted["type"] == "dataset"
            hub.repositories.setdefault(name, {})
            self.answer({"url": f"{hub.address}/datasets/{name}", "name": name})
        elif path == "/api/validate-yaml":
            assert json.loads(body)["content"].startswith("---\n")
            self.answer({"errors": [], "warnings": []})
        elif re.fullmatch(rf"/api/datasets/{REPO}/preupload/main", path):
            files = json.loads(body)["files"]
            modes = ["lfs" if LFS.fullmatch(one["path"]) else "regular" for one in files]
            told = [
                {"path": one["path"], "uploadMode": mode, "shouldIgnore": False}
                for one, mode in zip(files, modes, strict=True)
            ]
            self.answer({"files": told})
        elif re.fullmatch(rf"/datasets/{REPO}[.]git/info/lfs/objects/batch", path):
            told = [
                {**one, "actions": {} if one["oid"] in hub.objects else self.actions(one)}
                for one in json.loads(body)["objects"]
            ]
            self.answer({"transfer": "basic", "objects": told}, Content_Type="application/vnd.git-lfs+json")
        elif path == "/lfs/verify":
            one = json.loads(body)
            self.answer({}, 200 if len(hub.objects.get(one["oid"], b"")) == one["size"] else 404)
        elif match := re.fullmatch(rf"/api/datasets/{REPO}/commit/main", path):
            commit = hub.commit(match["repo"], [json.loads(line) for line in body.splitlines() if line])
            url = f"{hub.address}/datasets/{match['repo']}/commit/{commit}"
            self.answer({"commitUrl": url, "commitOid": commit, "success": True})
        elif match := re.fullmatch(rf"/api/datasets/{REPO}/paths-info/(?P<revision>[^/]+)", path):
            found = hub.files(match["repo"], match["revision"])
            asked = json.loads(body)["paths"] if body.startswith(b"{") else parse_qs(body.decode())["paths"]
            asked = [asked] if isinstance(asked, str) else asked
            told = [] if found is None else [entry(one, found[1][one]) for one in asked if one in found[1]]
            self.answer(told)
        else:
            self.refuse("EntryNotFound")

    def actions(self, one: dict[str, Any]) -> dict[str, Any]:
        upload = {"href": f"{self.hub.address}/lfs/{one['oid']}"}
        return {"upload": upload, "verify": {"href": f"{self.hub.address}/lfs/verify"}}

    def do_PUT(self) -> None:
        content, oid = self.body(), self.path.rpartition("/")[2]
        right = hashlib.sha256(content).hexdigest() == oid
        if right:
            self.hub.objects[oid] = content
        self.answer({}, 200 if right else 400)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path, hub = unquote(parts.path), self.hub
        if match := re.fullmatch(rf"/datasets/{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", path):
            self.file(match)
        elif match := re.fullmatch(rf"/api/datasets/{REPO}(?:/revision/(?P<revision>.+))?", path):
            found = hub.files(match["repo"], match["revision"] or "main")
            if found is None:
                self.refuse("RevisionNotFound" if match["repo"] in hub.repositories else "RepoNotFound")
                return
            siblings = [{"rfilename": one} for one in found[1]]
            about = {"id": match["repo"], "sha": found[0], "private": False, "disabled": False, "gated": False}
            self.answer({**about, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0})
        elif match := re.fullmatch(rf"/api/datasets/{REPO}/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?", path):
            found = hub.files(match["repo"], match["revision"])
            if found is None:
                self.refuse("RevisionNotFound")
                return
            recursive = parse_qs(parts.query).get("recursive", ["false"])[0].lower() == "true"
            listed = tree(found[1], match["path"] or "", recursive)
            self.answer(listed) if listed else self.refuse("EntryNotFound")
        elif re.fullmatch(rf"/api/datasets/{REPO}/refs", path):
            self.answer({"branches": [], "converts": [], "tags": []})
        else:
            self.refuse("EntryNotFound")

    do_HEAD = do_GET

    def file(self, match: re.Match[str]) -> None:
        found = self.hub.files(match["repo"], match["revision"])
        if found is None or match["path"] not in found[1]:
            self.refuse("EntryNotFound" if found else "RepoNotFound")
            return
        content = found[1][match["path"]]
        about = entry(match["path"], content)
        etag = about["lfs"]["oid"] if "lfs" in about else about["oid"]
        headers = {"ETag": f'"{etag}"', "X_Repo_Commit": found[0], "Accept_Ranges": "bytes"}
        if "lfs" in about:
            headers |= {"X_Linked_ETag": f'"{etag}"', "X_Linked_Size": str(len(content))}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self.answer(content, **headers)
            return
        first, last = int(asked[1]), min(int(asked[2] or len(content) - 1), len(content) - 1)
        headers["Content_Range"] = f"bytes {first}-{last}/{len(content)}"
        self.answer(content[first : last + 1], 206, **headers)


@contextmanager
def serve() -> Iterator[Hub]:
    """A Hub without repositories, until the end of the block."""
    hub = Hub()
    handler = type("HubHandler", (Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
