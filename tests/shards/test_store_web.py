"""What web servers can do wrong, and what stores make of it."""

import signal
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from setsup.errors import DataError
from setsup.shards.stores import attempts
from setsup.shards.stores.opening import open_store
from setsup.shards.stores.ranges import AT_ONCE
from setsup.shards.stores.store import Range
from tests.shards.sets import content, local


@pytest.fixture
def site(web):
    web.files |= {"set/data-00000.tar": content(1, 60_000), "set/in/a b#1%.tar": b"0123456789", "set/.git/x": b"x"}
    return open_store(f"{web.url}/set")


def test_files_of_a_web_server_are_read(web, site, tmp_path):
    assert site.names() == ["data-00000.tar", "in/a b#1%.tar"]
    assert (site.size("in/a b#1%.tar"), site.size("none.tar")) == (10, None)
    assert site.read("in/a b#1%.tar", 10) == b"0123456789"
    data = web.files["set/data-00000.tar"]
    wanted = [Range("data-00000.tar", start, start + 100) for start in range(0, 60_000, 600)]
    assert site.ranges(wanted) == [data[one.start : one.stop] for one in wanted]
    site.get("data-00000.tar", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data


def test_requests_are_under_way_at_once_but_not_more_than_the_bound(web, site):
    web.delay = 0.05
    site.ranges([Range("data-00000.tar", start, start + 1) for start in range(200)])
    assert len(web.seen) == 200
    assert 8 < web.most <= AT_ONCE


def test_what_the_web_cannot_do_is_told(web, site, tmp_path):
    for call in (
        lambda: site.put("x", local(tmp_path, b"")),
        lambda: site.put_bytes("x", b""),
        lambda: site.remove(["x"]),
    ):
        with pytest.raises(DataError, match=r"cannot write .*x: http is read-only"):
            call()
    web.lists = False
    with pytest.raises(DataError, match=r"does not exist|does not list its files"):
        site.names()


def test_files_are_written_only_where_they_are_whole_or_not_there(tmp_path):
    store = open_store(f"simplecache::file://{tmp_path}/set")  # which shows a file as it grows
    for call in (lambda: store.put("x", local(tmp_path, b"x")), lambda: store.put_bytes("x", b"x")):
        with pytest.raises(DataError, match=r"cannot write .*x: simplecache is read-only; write to a folder"):
            call()
    assert not (tmp_path / "set").exists()


def test_a_server_that_sends_without_end_is_left(short_waits):
    """As one that promises ten bytes in its headers may."""
    sent = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            nonlocal sent
            self.send_response(206)
            self.send_header("Content-Range", "bytes 0-9/10")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                while sent < 1 << 30:
                    self.wfile.write(b"%x\r\n%s\r\n" % (1 << 20, bytes(1 << 20)))
                    sent += 1 << 20
            except OSError:
                self.close_connection = True

        def log_message(self, *said):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        store = open_store(f"http://127.0.0.1:{server.server_address[1]}/set")
        with pytest.raises(
            DataError, match=r"data\.tar cannot be read in parts: its server returned more bytes than requested"
        ):
            store.ranges([Range("data.tar", 0, 10)])
        server.shutdown()
    assert sent < 64 << 20


def test_a_page_without_files_says_how_to_index(web):
    web.files["set/page.txt"] = b""
    web.lists = True
    store = open_store(f"{web.url}/empty")
    web.files["empty/"] = b"<html>nothing</html>"
    with pytest.raises(DataError, match="does not list its files; index a copy on a disk with `setsup index"):
        store.names()


@pytest.mark.parametrize("wrong", [500, 502, 503, 504, 429, 408, -1, -2, -3])
def test_what_passes_is_tried_again(web, site, short_waits, wrong):
    data = web.files["set/data-00000.tar"]
    passing = 1 if wrong == -3 else 2
    web.failing = [wrong] * passing
    assert site.ranges([Range("data-00000.tar", 5, 5000)]) == [data[5:5000]]
    assert len(web.seen) == passing + 1
    web.seen.clear()
    web.failing = [wrong] * 99
    with pytest.raises(DataError, match=r"/set/data-00000\.tar (cannot be|ends before)"):
        site.ranges([Range("data-00000.tar", 5, 5000)])
    # a file that ends early is asked for once more; aiohttp itself asks again where a kept connection is closed
    assert len(web.seen) in ({2} if wrong == -3 else range(4, 9) if wrong == -2 else {4})


@pytest.mark.parametrize("wrong", [400, 401, 403, 404, 405, 410, 451, 501])
def test_what_does_not_pass_is_told_at_once(web, site, wrong):
    web.failing = [wrong]
    with pytest.raises(DataError, match=r"/set/data-00000\.tar ") as caught:
        site.ranges([Range("data-00000.tar", 5, 5000)])
    assert len(web.seen) == 1
    expected = {401: "denied access", 403: "denied access", 404: "does not exist", 410: "does not exist"}.get(
        wrong, str(wrong)
    )
    assert expected in str(caught.value)


def test_one_bad_range_among_many_ends_them(web, site):
    web.failing = [0] * 10 + [403]
    with pytest.raises(DataError, match="403"):
        site.ranges([Range("data-00000.tar", start, start + 1) for start in range(1000)])
    assert len(web.seen) < 200


def test_waits_grow_and_are_few():
    waits = attempts.WAITS
    assert len(waits) == 3
    assert list(waits) == sorted(waits)
    assert sum(waits) < 10


def test_a_server_that_stays_silent_is_given_up(web, site, short_waits, monkeypatch):
    monkeypatch.setattr(attempts, "SECONDS", 0.05)
    web.delay = 1.0
    began = time.monotonic()
    with pytest.raises(DataError, match="did not respond in time"):
        site.ranges([Range("data-00000.tar", 5, 10)])
    assert time.monotonic() - began < 30


def test_a_slow_server_is_waited_for(web, site):
    web.pause = 0.3
    assert site.ranges([Range("data-00000.tar", 5, 10)]) == [web.files["set/data-00000.tar"][5:10]]


def test_a_server_without_ranges_is_told_but_whole_files_come(web, site, tmp_path):
    web.ranges = False
    with pytest.raises(DataError, match="does not support byte ranges; copy the files to a local folder"):
        site.ranges([Range("data-00000.tar", 5, 10)])
    assert site.read("in/a b#1%.tar", 100) == b"0123456789"
    assert site.size("data-00000.tar") == 60_000
    site.get("data-00000.tar", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == web.files["set/data-00000.tar"]


def test_a_file_of_another_size_is_told_along_with_the_bytes(web, site):
    with pytest.raises(DataError, match="has 60,000 bytes, not the expected 59,000"):
        site.ranges([Range("data-00000.tar", 5, 10, 59_000)])
    assert len(web.seen) == 1
    assert site.ranges([Range("data-00000.tar", 5, 10, 60_000)]) == [web.files["set/data-00000.tar"][5:10]]


def test_a_query_stays_at_the_end_and_is_never_said(web, site, short_waits):
    store = open_store(f"{web.url.replace('http://', 'http://me:word@')}/set?sig=secret")
    assert store.names() == ["data-00000.tar", "in/a b#1%.tar"]
    assert store.size("data-00000.tar") == 60_000
    assert web.headers[-1]["Authorization"].startswith("Basic ")
    for wrong in (401, 403, 404, 500, 400):
        web.failing = [wrong] * 4
        with pytest.raises(DataError) as caught:
            open_store(store._address, {"client_kwargs": {}}).ranges([Range("x.tar", 0, 1)])
        web.failing = []
        assert "secret" not in str(caught.value)
        assert "word@" not in str(caught.value)


def test_an_address_that_cannot_be_reached_is_told(short_waits):
    for address in ("http://127.0.0.1:9/set", "https://no-such-host.invalid/set"):
        with pytest.raises(DataError, match=f"{address}/a.tar cannot be reached"):
            open_store(address).ranges([Range("a.tar", 0, 1)])


@pytest.mark.long("stores")
@pytest.mark.parametrize("kind", ["http", "http by name", "s3"])
def test_where_nobody_answers_is_tried_twice(kind, bucket, short_waits, caplog):
    address = {"http": "http://127.0.0.1:9/set", "http by name": "https://no-such-host.invalid/set", "s3": bucket.url}
    store = open_store(address[kind], {"endpoint_url": "http://127.0.0.1:9"} if kind == "s3" else None)
    with caplog.at_level("INFO", "setsup"), pytest.raises(DataError, match="cannot be reached"):
        store.size("a.tar")
    assert sum("trying again" in record.message for record in caplog.records) == 1


def test_libraries_say_where_a_failure_comes_from_in_the_log_only(web, site, caplog):
    address = f"{web.url.replace('http://', 'http://me:word@')}/set?sig=secret"
    web.failing = [403, 403]
    with pytest.raises(DataError) as caught:
        open_store(address).size("a.tar")
    assert "aiohttp" not in "".join(traceback.format_exception(caught.value))
    with caplog.at_level("DEBUG", "setsup"), pytest.raises(DataError):
        open_store(address).size("a.tar")
    assert "ClientResponseError" in caplog.text
    assert "Traceback" in caplog.text
    assert "secret" not in caplog.text
    assert "word@" not in caplog.text
    web.failing = [418]  # of which nobody knows what it means
    with pytest.raises(DataError) as caught:
        open_store(address).size("a.tar")
    assert "aiohttp" in "".join(traceback.format_exception(caught.value))


@pytest.mark.long("stores")
def test_ctrl_c_ends_the_requests(web, site):
    main = threading.get_ident()
    web.delay = 0.3

    def interrupt():
        while len(web.seen) < 32:  # it waits for answers by now
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            site.ranges([Range("data-00000.tar", start, start + 1) for start in range(2000)])
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    time.sleep(1.0)
    assert len(web.seen) <= 4 * AT_ONCE


def test_a_redirect_in_a_loop_is_one_sentence_at_once(web, site):
    web.redirects = {"set/data-00000.tar": "/set/other.tar", "set/other.tar": "/set/data-00000.tar"}
    with pytest.raises(
        DataError, match=r"data-00000\.tar cannot be accessed: its server redirects in a loop; check the addr"
    ):
        site.read("data-00000.tar", 1 << 20)
    asked = len(web.seen)
    with pytest.raises(DataError, match="redirects in a loop"):
        site.ranges([Range("data-00000.tar", 0, 10)])
    assert len(web.seen) <= 2 * asked  # not tried again


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http:///x"])
def test_a_redirect_to_no_web_address_is_one_sentence_at_once(web, site, target):
    web.redirects = {"set/data-00000.tar": target}
    with pytest.raises(
        DataError, match=r"data-00000\.tar cannot be accessed: its server redirects to an invalid address"
    ):
        site.read("data-00000.tar", 1 << 20)
    assert len(web.seen) == 1


def test_a_server_that_never_answers_is_said_to_and_given_up_after_two_attempts(web, site, monkeypatch, caplog):
    monkeypatch.setattr(attempts, "SECONDS", 0.3)
    monkeypatch.setattr(attempts, "SILENCE", 0.1)
    monkeypatch.setattr(attempts, "WAITS", (0.001, 0.002, 0.004))
    web.delay = 1.5
    with pytest.raises(DataError, match="did not respond in time"):
        site.read("data-00000.tar", 1 << 20)
    assert len(web.seen) == 2
    assert [one.message for one in caplog.records if one.levelname == "WARNING"] == [
        f"{web.url}/set has not responded for 0 s; giving up after about 1 s"
    ]


def test_a_server_that_answered_before_is_waited_for_longer(web, site, monkeypatch):
    assert site.size("data-00000.tar") == 60_000
    monkeypatch.setattr(attempts, "SECONDS", 0.1)
    monkeypatch.setattr(attempts, "WAITS", (0.001, 0.002, 0.004))
    web.delay = 0.6
    with pytest.raises(DataError, match="did not respond in time"):
        site.ranges([Range("data-00000.tar", 0, 10)])
    assert len(web.seen) == 5
