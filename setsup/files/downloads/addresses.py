"""Addresses that a document from elsewhere names: none of them may lead into a private network."""

import ipaddress
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from setsup.errors import DataError

if TYPE_CHECKING:
    import requests

__all__ = ["redirect_hook", "refuse_private"]

_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that IPv6 assigns to hosts of the Internet
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


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
        if not _is_public(ipaddress.ip_address(str(address[0]).partition("%")[0])):
            raise DataError(
                f"{label} names {url}, whose host {parts.hostname} is in a private network ({address[0]}); fetch it "
                "yourself if you trust it"
            )


def redirect_hook(check: Callable[[str], object]) -> Callable[..., None]:
    """Make a hook of ``requests`` for responses: `check` is called with each address that a server redirects to."""

    def follow(response: "requests.Response", **_: object) -> None:
        if response.is_redirect:
            check(urljoin(response.url, response.headers["location"]))

    return follow


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is one of the Internet, also where IPv6 wraps one of IPv4."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast
    wrapped = address.ipv4_mapped or address.sixtofour
    if address in _NAT64:
        wrapped = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if wrapped is not None:
        return _is_public(wrapped)
    return address in _UNICAST and address.is_global
