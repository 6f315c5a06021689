"""Read a small document from an address, bounded in size."""

from collections.abc import Sequence

from setsup.errors import DataError
from setsup.files.downloads.addresses import check_addresses, is_same_host, refuse_private

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

    def check(other: str, hosts: Sequence[str] = ()) -> None:
        if not is_same_host(other, url):
            refuse_private(other, url, hosts)

    try:
        with requests.Session() as session:
            check_addresses(session, check)
            session.headers["User-Agent"] = "setsup"
            answer = session.get(url, stream=True, timeout=_TIMEOUTS)
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
