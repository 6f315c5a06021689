"""Who gets an answer of a live page, and who does not: requests sent to its application by hand."""

import asyncio
import json

import pytest

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from setsup.pages import page_of
from setsup.pages.guard import Limit
from setsup.pages.server import application
from setsup.pages.shell import FILES
from tests.pages.sources import uneven

TOKEN, PORT = "secret-token", 4711
PAGE = page_of({"animals": uneven()})
APP = application(PAGE, TOKEN, PORT)
COOKIE = f"setsup-{PORT}={TOKEN}"


def ask(path="/", query="", *, method="GET", host="127.0.0.1:4711", **headers):
    """Status, headers and content of an answer; None as the host sends no such header."""
    given = [] if host is None else [(b"host", host.encode())]
    given += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path}
    scope |= {"raw_path": path.encode(), "query_string": query.encode(), "headers": given, "scheme": "http"}
    scope |= {"server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1), "root_path": ""}
    messages = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        messages.append(message)

    asyncio.run(APP(scope, receive, send))
    found = {key.decode(): value.decode() for key, value in messages[0]["headers"]}
    return messages[0]["status"], found, b"".join(one.get("body", b"") for one in messages[1:])


def test_the_token_opens_the_page_and_sets_a_cookie_that_opens_the_rest():
    status, headers, content = ask(query=f"token={TOKEN}")
    assert status == 200
    assert headers["set-cookie"] == f"{COOKIE}; Path=/; HttpOnly; SameSite=Strict"
    assert b"<!doctype html>" in content
    assert TOKEN.encode() not in content
    status, headers, content = ask("/get", "q=counts&s=d0&where=", cookie=f"other=1; {COOKIE}")
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert "set-cookie" not in headers
    assert content.startswith(b'{"rows":9')
    for name in FILES:
        assert ask(f"/static/{name}", cookie=COOKIE)[0] == 200


@pytest.mark.parametrize("other", ['x={"a": 1}', 'name=John "JD" Doe', "a=b c", "a=é", "junk", "path=/", "=", ""])
def test_cookies_of_other_programs_lock_no_one_out(other):
    assert ask(cookie=f"{other}; {COOKIE}")[0] == 200
    assert ask(cookie=f"{COOKIE};{other}")[0] == 200
    assert ask(cookie=f"{other}; x{COOKIE}")[0] == 403
    assert ask(cookie=f"{other}; {COOKIE}x")[0] == 403


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({}, 403),
        ({"query": "token="}, 403),
        ({"query": "token=wrong"}, 403),
        ({"query": f"token={TOKEN}&token={TOKEN}"}, 403),
        ({"path": "/get", "query": f"token={TOKEN}"}, 403),
        ({"path": "/get", "query": "s=d0&q=counts", "cookie": "setsup-4711=wrong"}, 403),
        ({"path": "/get", "query": "s=d0&q=counts", "cookie": f"setsup-4712={TOKEN}"}, 403),
        ({"path": "/static/get.js"}, 403),
        ({"cookie": COOKIE, "method": "POST"}, 405),
        ({"cookie": COOKIE, "method": "HEAD"}, 405),
        ({"cookie": COOKIE, "method": "OPTIONS"}, 405),
        ({"cookie": COOKIE, "host": "evil.example"}, 403),
        ({"cookie": COOKIE, "host": "127.0.0.1.evil.example:4711"}, 403),
        ({"cookie": COOKIE, "host": "user@127.0.0.1:4711"}, 403),
        ({"cookie": COOKIE, "host": "127.0.0.1:4711x"}, 403),
        ({"cookie": COOKIE, "host": "0.0.0.0:4711"}, 403),
        ({"cookie": COOKIE, "host": ""}, 403),
        ({"cookie": COOKIE, "host": None}, 403),
        ({"cookie": COOKIE, "origin": "http://evil.example"}, 403),
        ({"cookie": COOKIE, "origin": "http://127.0.0.1:4712"}, 403),
        ({"cookie": COOKIE, "origin": "null"}, 403),
        ({"cookie": COOKIE, "sec_fetch_site": "cross-site"}, 403),
        ({"cookie": COOKIE, "sec_fetch_site": "same-site"}, 403),
        ({"cookie": COOKIE, "path": "/nothing"}, 404),
        ({"cookie": COOKIE, "path": "/get/"}, 404),
        ({"cookie": COOKIE, "path": "/static/..%5c..%5cserver.py"}, 404),
        ({"cookie": COOKIE, "path": "/static/..\\server.py"}, 404),
        ({"cookie": COOKIE, "path": "/static/../server.py"}, 404),
        ({"cookie": COOKIE, "path": "/static/vendor/htm.LICENSE"}, 404),
    ],
)
def test_others_are_refused(request_, status):
    found, headers, content = ask(**request_)
    assert found == status
    assert "set-cookie" not in headers
    assert TOKEN.encode() not in content


@pytest.mark.parametrize("query", ["s=d9&q=counts", "%ff%fe", "s=d0&q=counts&where=(", "a=" + "b" * 20_000])
def test_what_cannot_be_answered_is_a_sentence(query):
    status, _, content = ask("/get", query, cookie=COOKIE)
    assert status == 200
    assert list(json.loads(content)) == ["error"]


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "[::1]:9", "[::1]", "127.0.0.1", "LOCALHOST:1"])
def test_any_port_of_this_machine_is_let_in_for_forwarded_ones(host):
    assert ask(cookie=COOKIE, host=host, origin=f"http://{host}", sec_fetch_site="same-origin")[0] == 200


@pytest.mark.parametrize("request_", [{}, {"cookie": COOKIE}, {"cookie": COOKIE, "path": "/get", "query": "s=x"}])
def test_every_answer_has_the_headers(request_):
    headers = ask(**request_)[1]
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert policy.endswith("frame-ancestors 'none'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize("kind", ["websocket", "lifespan", "other"])
def test_other_kinds_of_requests_reach_nothing(kind):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        raise AssertionError("nothing is read")

    asyncio.run(APP({"type": kind, "headers": [(b"cookie", COOKIE.encode())]}, receive, send))
    assert sent == ([{"type": "websocket.close", "code": 1008}] if kind == "websocket" else [])


def test_so_many_answers_at_a_time():
    running, most = 0, 0

    async def answer():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return True

    async def ask_all():
        limit = Limit(2, 3)
        found = await asyncio.gather(*(limit.run(answer) for _ in range(9)))
        again = await limit.run(answer)
        return found, again

    found, again = asyncio.run(ask_all())
    assert most == 2
    assert found.count(True) == 5
    assert again is True
