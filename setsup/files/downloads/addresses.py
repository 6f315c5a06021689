"""Addresses that a document from elsewhere names: none of them may lead into a private network."""

import ipaddress
import socket
from urllib.parse import urlsplit

from setsup.errors import DataError

__all__ = ["refuse_private"]


def refuse_private(url: str, label: str) -> None:
    """Refuse an address whose host is this machine or in a private network; `label` is who names it.

    Raises
    ------
    DataError
        When it is, or the host has no address.

    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DataError(f"{label} names the address {url!r}; expected http or https, with a host")
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, ValueError, UnicodeError) as error:
        raise DataError(f"{label} names {url}, whose host could not be found: {error}; check the connection") from None
    for *_, address in found:
        if not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_global:
            raise DataError(
                f"{label} names {url}, whose host {parts.hostname} is in a private network ({address[0]}); fetch it "
                "yourself if you trust it"
            )
