"""Addresses that a document from elsewhere names: none of them may lead into a private network."""

import ipaddress
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urljoin, urlsplit

from setsup.errors import DataError

if TYPE_CHECKING:
    import requests

__all__ = ["AddressCheck", "check_addresses", "is_same_host", "refuse_private"]

_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that IPv6 assigns to hosts of the Internet
_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class AddressCheck(Protocol):
    """Raises where an address must not be asked; `hosts` are IP addresses of its host, sought where none are given."""

    def __call__(self, url: str, hosts: Sequence[str] = (), /) -> object:
        """Check an address."""
        ...


def is_same_host(url: str, other: str) -> bool:
    """Whether two addresses have the same host and port."""
    try:
        places = [(parts.hostname, parts.port or _PORTS.get(parts.scheme)) for parts in map(urlsplit, (url, other))]
    except ValueError:  # one of them is none
        return False
    return places[0] == places[1]


def refuse_private(url: str, label: str, hosts: Sequence[str] = ()) -> None:
    """Refuse an address whose host is this machine or in a private network; `label` is who names it.

    `hosts` are IP addresses of the host; where none are given, its name is resolved.

    Raises
    ------
    DataError
        When it is, or the host has no address.

    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DataError(f"{label} names the address {url!r}; expected http or https, with a host")
    try:
        found = [str(address[0]) for *_, address in _resolve(parts.hostname, parts.port)] if not hosts else hosts
    except (OSError, ValueError, UnicodeError) as error:
        raise DataError(f"{label} names {url}, whose host could not be found: {error}; check the connection") from None
    for address in found:
        if not _is_public(ipaddress.ip_address(address.partition("%")[0])):
            raise DataError(
                f"{label} names {url}, whose host {parts.hostname} is in a private network ({address}); fetch it "
                "yourself if you trust it"
            )


def _resolve(host: str, port: int | None) -> Sequence[Any]:
    return socket.getaddrinfo(host, port or 443, type=socket.SOCK_STREAM)


def check_addresses(session: "requests.Session", check: AddressCheck) -> None:
    """Check each address that a server redirects to, and the host of each connection before anything is sent.

    The name of a host may lead elsewhere when it is resolved once more. Connections through a proxy are its own.
    """
    from requests.adapters import HTTPAdapter
    from urllib3 import connection, connectionpool

    def follow(response: "requests.Response", **_: object) -> None:
        if response.is_redirect:
            check(urljoin(response.url, response.headers["location"]))

    def connect(self: Any, plain: Any, scheme: str) -> None:
        plain.connect(self)
        host = f"[{self.host}]" if ":" in self.host else self.host
        check(f"{scheme}://{host}:{self.port}/", [str(self.sock.getpeername()[0])])

    class Connection(connection.HTTPConnection):
        def connect(self) -> None:
            connect(self, connection.HTTPConnection, "http")

    class SecureConnection(connection.HTTPSConnection):
        def connect(self) -> None:
            connect(self, connection.HTTPSConnection, "https")

    class Pool(connectionpool.HTTPConnectionPool):
        ConnectionCls = Connection

    class SecurePool(connectionpool.HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    for scheme in ("http://", "https://"):
        adapter = HTTPAdapter()
        adapter.poolmanager.pool_classes_by_scheme = {"http": Pool, "https": SecurePool}
        session.mount(scheme, adapter)
    session.hooks["response"].append(follow)


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
