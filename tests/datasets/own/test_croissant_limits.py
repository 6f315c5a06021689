"""Croissant descriptions from anybody: nothing outside their folder, no private host, no memory without a limit."""

import gzip
import hashlib
import http.server
import json
import socket
import threading
import zipfile
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setsup.datasets import open_croissant
from setsup.errors import DataError, SetsupError
from setsup.files.downloads.addresses import refuse_private
from tests.croissant_documents import FILES, at_path, column, content, file, named, reference, write, write_image

NAME = named("name", "(.*)")


def one_column(folder, *files, kind="sc:Integer", **options):
    """Open the column ``v`` of the first file."""
    path = write(folder, list(files), [column("v", files[0]["@id"], kind=kind)])
    return open_croissant(path, records="r", **options)


# -- folders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", ["..", "%2e%2e", "%00", "a%00b", "..%2fsecret", "%2Fetc", "..\\secret"])
def test_no_address_leads_out_of_the_root(tmp_path, last):
    write_image(tmp_path / "secret.png", 9)
    (tmp_path / "root").mkdir()
    zipped = file("z", f"https://example.org/x/{last}", "application/zip")
    path = write(tmp_path / "described", [zipped, {**FILES, "containedIn": {"@id": "z"}}], [content(), NAME])
    with pytest.raises(DataError, match="leads out of its folder"):
        open_croissant(path, root=tmp_path / "root")


@pytest.fixture
def outside(tmp_path):
    write_image(tmp_path / "outside" / "secret.png", 9)
    (tmp_path / "outside" / "t.csv").write_text("v\n1\n2\n")
    (tmp_path / "inside").mkdir()
    return tmp_path / "outside"


@pytest.mark.parametrize("rooted", [False, True])
def test_links_of_folders_are_not_followed_out_of_them(tmp_path, outside, rooted):
    inside = tmp_path / "inside"
    (inside / "out").symlink_to(outside)
    write_image(inside / "a.png", 1)
    (inside / "b.png").symlink_to(outside / "secret.png")
    (inside / "c.png").symlink_to(inside / "a.png")
    path = write(tmp_path / "described" if rooted else inside, [FILES], [content(), NAME])
    found = open_croissant(path, **({"root": inside} if rooted else {}))
    assert found.factors.values("name").tolist() == ["a.png", "c.png"]


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("link", ["t.csv", "sub"])
def test_a_link_to_a_file_outside_is_refused(tmp_path, outside, rooted, link):
    inside = tmp_path / "inside"
    (inside / link).symlink_to(outside / "t.csv" if link == "t.csv" else outside)
    table = file("t", "t.csv" if link == "t.csv" else "sub/t.csv")
    with pytest.raises(
        DataError, match=r"links to a path outside .*inside; expected a file inside it; pass the folder"
    ):
        one_column(tmp_path / "described" if rooted else inside, table, **({"root": inside} if rooted else {}))


def test_a_folder_in_place_of_a_table_ends_in_one_sentence(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(DataError, match="is not a file"):
        one_column(tmp_path, file("t.csv"))
    (tmp_path / "x.json").mkdir()
    with pytest.raises(DataError, match="is not a file"):
        open_croissant(write(tmp_path, [file("x.json", kind="application/json")], [at_path("v", "$.v")]), records="r")


# -- digests and identifiers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_local_files_are_compared_with_their_digest(tmp_path, algorithm):
    content = b"v\n1\n2\n"
    (tmp_path / "t.csv").write_bytes(content)
    right = hashlib.new(algorithm, content).hexdigest()
    assert len(one_column(tmp_path, file("t.csv", **{algorithm: right}))) == 2
    with pytest.raises(DataError, match=rf"t\.csv has {algorithm} {right}, not the expected 000.*fetch it again"):
        one_column(tmp_path, file("t.csv", **{algorithm: "0" * len(right)}))


def test_identifiers_are_distinct(tmp_path):
    (tmp_path / "t.csv").write_text("v,w\n1,a\n2,b\n")
    fields = [column("v", "t.csv"), {**column("w", "t.csv"), "@id": "r/v"}]
    with pytest.raises(DataError, match="has two fields with the @id 'r/v'"):
        open_croissant(write(tmp_path, [file("t.csv")], fields), records="r")
    other = {"@id": "r", "field": [{**column("w", "t.csv"), "@id": "s/w"}]}
    with pytest.raises(DataError, match="has two record sets with the @id 'r'"):
        open_croissant(write(tmp_path, [file("t.csv")], [column("v", "t.csv")], [other]), records="r")


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def little(monkeypatch):
    """A limit of what a file of some kilobytes may grow into."""
    monkeypatch.setattr("setsup.files.limits._BESIDE", 1 << 10)
    monkeypatch.setattr("setsup.factors.io.text_file._FREE", 1 << 10)


def test_a_gzipped_table_is_limited(tmp_path, little):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"v\n" + b"1\n" * 1_000_000))
    with pytest.raises(DataError, match="decompresses to more than 200 times its size"):
        one_column(tmp_path, file("t", "t.csv.gz"))


def test_a_gzipped_table_is_read(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"v\n1\n2\n"))
    assert one_column(tmp_path, file("t", "t.csv.gz")).factors.values("v").tolist() == [1, 2]


def test_tables_of_a_set_in_an_archive_are_limited(tmp_path, little):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", b"v\n" + b"1\n" * 1_000_000)
    tables = {"@type": "cr:FileSet", "@id": "t", "containedIn": {"@id": "a.zip"}, "includes": "*.csv"}
    tables["encodingFormat"] = "text/csv"
    source = {"fileSet": {"@id": "t"}, "extract": {"column": "v"}}
    path = write(tmp_path, [file("a.zip", kind="application/zip"), tables], [{"@id": "r/v", "source": source}])
    with pytest.raises(DataError, match=r"t\.csv has 2,000,002 bytes, more than"):
        open_croissant(path, records="r")


def written_arrow(path, table, streamed, compression=None):
    new = pa.ipc.new_stream if streamed else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink:
        with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(table)


ARROW = "application/vnd.apache.arrow.stream"


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize("coded", [False, True])
def test_compressed_arrow_files_are_refused(tmp_path, streamed, compression, coded):
    table = pa.table({"v": ["a"] * 5 + ["b"]})
    table = table.set_column(0, "v", table.column(0).dictionary_encode()) if coded else table
    written_arrow(tmp_path / "t.arrow", table, streamed, compression)
    with pytest.raises(DataError, match="has compressed buffers, which setsup does not read"):
        one_column(tmp_path, file("t", "t.arrow", ARROW))


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("coded", [False, True])
def test_arrow_files_are_read(tmp_path, streamed, coded):
    table = pa.table({"v": ["a", "b", None], "w": [1, 2, 3]})
    table = table.set_column(0, "v", table.column(0).dictionary_encode()) if coded else table
    written_arrow(tmp_path / "t.arrow", table, streamed)
    found = one_column(tmp_path, file("t", "t.arrow", ARROW), kind="sc:Text")
    assert found.factors.values("v").tolist() == ["a", "b", None]


@pytest.mark.parametrize("write_table", [written_arrow, pq.write_table])
def test_nulls_without_bytes_are_limited(tmp_path, little, write_table):
    table, path = pa.table({"v": pa.nulls(10_000_000)}), tmp_path / "t.table"
    kind = "application/x-parquet" if write_table is pq.write_table else ARROW
    if write_table is pq.write_table:
        pq.write_table(table, path)
    else:
        written_arrow(path, table, streamed=True)
    with pytest.raises(DataError, match="its columns need more memory than the limit"):
        one_column(tmp_path, file("t", "t.table", kind))


def test_long_strings_that_repeat_are_limited(tmp_path, little):
    pq.write_table(pa.table({"v": ["x" * 10_000] * 5_000}), tmp_path / "t.parquet", compression="zstd")
    with pytest.raises(DataError, match="its columns need more memory than the limit"):
        one_column(tmp_path, file("t", "t.parquet", "application/x-parquet"), kind="sc:Text")


def test_lines_of_many_keys_are_read_for_the_columns_that_are_named(tmp_path, little):
    lines = [{"v": 1}, *({f"k{number}": number} for number in range(300))]
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert len(one_column(tmp_path, file("t", "t.jsonl", "application/jsonlines"))) == 301


def test_fields_that_repeat_a_column_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("setsup.datasets.own.croissant.joins._MOST_VALUES", 1000)
    (tmp_path / "t.csv").write_text("v\n" + "1\n" * 101)
    fields = [column(f"v{number}", "t.csv", "v") for number in range(10)]
    with pytest.raises(DataError, match="has 101 rows of 10 fields; expected at most 1,000 values"):
        open_croissant(write(tmp_path, [file("t.csv")], fields), records="r")


# -- downloads ---------------------------------------------------------------------------------------------------------

TABLE = b"v\n1\n2\n"


class _Server(http.server.BaseHTTPRequestHandler):
    """Serves a table, a description that names it, and redirects to them."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        other = {"/latest.json": "127.0.0.1", "/away.json": "localhost"}.get(self.path)
        if other is not None:
            self.send_response(302)
            self.send_header("Location", f"http://{other}:{self.server.server_port}/sub/croissant.json")
            self.end_headers()
            return
        self.send_response(200)
        body = self.server.content[self.path]
        if "endless" not in self.path:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(**content):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        server.content = {f"/{name}": body for name, body in content.items()}
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def described(folder, url, body=TABLE, **more):
    """Content of a description of a table at an address."""
    known = {"sha256": hashlib.sha256(body).hexdigest(), **more}
    return write(folder, [file("t", url, **known)], [column("v", "t", kind="sc:Integer")]).read_bytes()


@pytest.mark.parametrize("size", [None, "large"])
def test_a_file_of_unknown_size_is_not_fetched(tmp_path, size):
    more = {} if size is None else {"contentSize": size}
    with serving(**{"croissant.json": described(tmp_path, "t.csv", **more), "t.csv": TABLE}) as site:
        with pytest.raises(DataError, match="has no contentSize such as '512 B', so a download has no limit; fetch"):
            open_croissant(f"{site}/croissant.json", records="r", download=True)


@pytest.mark.parametrize("size", ["6 B", "6", "0.01 kB", "1 MB", "1 bytes"])
def test_a_file_has_at_most_the_stated_size(tmp_path, size):
    long = TABLE * 400 if size != "1 MB" else TABLE * 400_000
    for name, body in {"t.csv": TABLE, "long.csv": long, "endless.csv": long}.items():
        content = described(tmp_path, name, body, contentSize=size)
        with serving(**{"croissant.json": content, name: body}) as site:
            if body is TABLE and size != "1 bytes":
                assert len(open_croissant(f"{site}/croissant.json", records="r", download=True)) == 2
                continue
            with pytest.raises(DataError, match=r"could not be downloaded: .* (more than|not) the (limit of|expected)"):
                open_croissant(f"{site}/croissant.json", records="r", download=True)


def test_files_are_sought_where_the_description_was_redirected_to(tmp_path):
    content = described(tmp_path, "t.csv", contentSize="6 B")
    with serving(**{"sub/croissant.json": content, "sub/t.csv": TABLE}) as site:
        assert len(open_croissant(f"{site}/latest.json", records="r", download=True)) == 2


def test_a_description_is_not_redirected_into_a_private_network(tmp_path):
    content = described(tmp_path, "t.csv", contentSize="6 B")
    with serving(**{"sub/croissant.json": content, "sub/t.csv": TABLE}) as site:
        with pytest.raises(DataError, match="host localhost is in a private network"):
            open_croissant(f"{site}/away.json", records="r")


def test_a_host_whose_name_leads_elsewhere_by_the_time_it_is_asked_is_refused(tmp_path, monkeypatch):
    resolve, asked = socket.getaddrinfo, []

    def rebind(host, port, *given, **named):
        if host != "rebind.test":
            return resolve(host, port, *given, **named)
        asked.append(host)
        return resolve("93.184.216.34" if len(asked) == 1 else "127.0.0.1", port, *given, **named)

    with serving(**{"t.csv": TABLE}) as site:
        table = f"http://rebind.test:{site.rpartition(':')[2]}/t.csv"
        described(tmp_path, table, contentSize="6 B")
        monkeypatch.setattr(socket, "getaddrinfo", rebind)
        with pytest.raises(DataError, match=r"host rebind\.test is in a private network \(127\.0\.0\.1\)"):
            open_croissant(tmp_path / "croissant.json", records="r", download=True)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "host",
    [
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::a00:1]",
        "[2002:7f00:1::]",
        "[fec0::1]",
        "[ff0e::1]",
        "224.0.0.1",
        "0.0.0.0",
        "2130706433",
        "0x7f.1",
    ],
)
def test_other_spellings_of_private_addresses_are_refused(host):
    with pytest.raises(DataError, match="is in a private network"):
        refuse_private(f"http://{host}/x", "croissant.json")


@pytest.mark.parametrize(
    "host", ["93.184.216.34", "[2606:2800:220:1::1]", "[64:ff9b::5db8:d822]", "[2002:5db8:d822::]"]
)
def test_addresses_of_the_internet_are_not_refused(host):
    refuse_private(f"https://{host}/x", "croissant.json")


# -- what no path, factor or image can be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["https://[", "a" * 300, "\ud800", "https://example.org:port/x", "https://a.b/" + "c" * 300]
)
def test_an_address_that_is_none_ends_in_one_sentence(tmp_path, url):
    with pytest.raises(DataError, match="the contentUrl of 't'") as raised:
        one_column(tmp_path, file("t", url))
    assert "\n" not in str(raised.value)


def test_a_long_path_ends_in_one_sentence(tmp_path):
    with pytest.raises(DataError):
        one_column(tmp_path, file("t", "a/" * 3000 + "t.csv"))


def test_images_in_a_column_of_numbers_end_in_one_sentence(tmp_path):
    pq.write_table(pa.table({"v": [1, 2], "w": ["a", "b"]}), tmp_path / "t.parquet")
    fields = [column("v", "t", kind="sc:ImageObject"), column("w", "t")]
    path = write(tmp_path, [file("t", "t.parquet", "application/x-parquet")], fields)
    with pytest.raises(DataError, match=r"'r/v' of .* has the type int64; expected images as bytes"):
        open_croissant(path)


@pytest.mark.parametrize("level", [10**100, "\ud800", "\x00", 1e300])
@pytest.mark.parametrize("place", ["id", "name"])
def test_levels_that_no_factor_can_have_end_in_a_dataset_or_an_error_of_ours(tmp_path, level, place):
    (tmp_path / "t.csv").write_text("v\n1\n2\n")
    row = {"kinds/id": 1, "kinds/name": "a"}
    kinds = {
        "@id": "kinds",
        "field": [{"@id": "kinds/id"}, {"@id": "kinds/name"}],
        "data": [row, {"kinds/id": 2, "kinds/name": "b", f"kinds/{place}": level}],
    }
    path = write(tmp_path, [file("t.csv")], [column("v", "t.csv", references={"field": {"@id": "kinds/id"}})], [kinds])
    with suppress(SetsupError):
        assert len(open_croissant(path, records="r")) == 2


def test_images_in_objects_of_json_lines_end_in_one_sentence(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"v": {"bytes": "x", "path": "y"}, "w": 1}\n')
    fields = [column("v", "t.jsonl", kind="sc:ImageObject"), column("w", "t.jsonl")]
    with pytest.raises(DataError, match="expected images as bytes"):
        open_croissant(write(tmp_path, [file("t.jsonl", kind="application/jsonlines")], fields))


def test_images_of_another_record_set_that_cannot_be_joined_are_left_out(tmp_path, caplog):
    write_image(tmp_path / "1.png", 1)
    pq.write_table(pa.table({"id": ["1"], "depth": [b"x"], "w": [5]}), tmp_path / "t.parquet")
    table = file("t", "t.parquet", "application/x-parquet")
    key = named("key", "([0-9]*)", references=reference("t", "id"))
    other = {
        "@id": "s",
        "field": [
            {**column("depth", "t", kind="sc:ImageObject"), "@id": "s/depth"},
            {**column("id", "t", references=reference("t", "id")), "@id": "s/id"},
        ],
    }
    found = open_croissant(
        write(tmp_path, [FILES, table], [content(), key, column("w", "t", kind="sc:Integer")], [other]), records="r"
    )
    assert (list(found.modalities), found.factors.values("w").tolist()) == (["image"], [5])
    assert "the images of s cannot be joined; left out" in caplog.text
