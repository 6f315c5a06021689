"""Read a small document from an address, bounded in size."""

from setsup.errors import DataError

__all__ = ["read_document"]

_TIMEOUTS = (10.0, 30.0)  # seconds to connect, and between two pieces


def read_document(url: str, limit: int) -> bytes:
    """Content at an ``http`` or ``https`` address of the user's own, of at most `limit` bytes.

    Raises
    ------
    DataError
        When it cannot be read, or has more bytes.

    """
    import requests

    if not url.startswith(("http://", "https://")):
        raise DataError(f"{url} is not the address of a document; expected https://…")
    try:
        with requests.get(url, headers={"User-Agent": "setsup"}, stream=True, timeout=_TIMEOUTS) as answer:
            if answer.status_code != 200:
                raise DataError(f"{url} returned HTTP {answer.status_code} {answer.reason or ''}".rstrip())
            content = b""
            for piece in answer.iter_content(1 << 16):
                content += piece
                if len(content) > limit:
                    raise DataError(f"{url} has more bytes than the limit of {limit:,}")
            return content
    except requests.RequestException as error:
        raise DataError(
            f"{url} could not be read: {type(error).__name__}; check the address and the connection"
        ) from None
