"""Read a small document from an address, bounded in size."""

from urllib.parse import urlsplit

from setsup.errors import DataError
from setsup.files.downloads.addresses import redirect_hook, refuse_private

__all__ = ["read_document"]

_TIMEOUTS = (10.0, 30.0)  # seconds to connect, and between two pieces


def read_document(url: str, limit: int) -> tuple[bytes, str]:
    """Content at an ``http`` or ``https`` address that the user named, and the address after redirects.

    The content has at most `limit` bytes.

    Raises
    ------
    DataError
        When it cannot be read or has more bytes, or another host that it redirects to is in a private network.

    """
    import requests

    if not url.startswith(("http://", "https://")):
        raise DataError(f"{url} is not the address of a document; expected https://…")

    def check(other: str) -> None:
        if urlsplit(other).netloc != urlsplit(url).netloc:
            refuse_private(other, url)

    hooks = {"response": redirect_hook(check)}
    headers = {"User-Agent": "setsup"}
    try:
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUTS, hooks=hooks) as answer:
            if answer.status_code != 200:
                raise DataError(f"{url} returned HTTP {answer.status_code} {answer.reason or ''}".rstrip())
            content = b""
            for piece in answer.iter_content(1 << 16):
                content += piece
                if len(content) > limit:
                    raise DataError(f"{url} has more bytes than the limit of {limit:,}")
            return content, answer.url
    except (requests.RequestException, ValueError) as error:
        raise DataError(
            f"{url} could not be read: {type(error).__name__}; check the address and the connection"
        ) from None
