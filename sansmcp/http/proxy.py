"""Through which proxy a server is reached, from the environment's variables.

``http_proxy``, ``https_proxy`` and ``all_proxy`` name a proxy by its address; ``no_proxy`` lists what is
reached without one. Lower case goes before upper case.

Specification: RFC 9110, sections 9.3.6 (CONNECT) and 11.7 (Proxy-Authorization).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

import attrs

from ..errors import LocalProtocolError
from .url import Url

_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[0-9a-z_.~!$&'()*+,;=%-]+|[0-9a-f:.]+")
_USER: Final = re.compile(r"[!-~]*")


@attrs.frozen(repr=False)
class Proxy:
    """A proxy that speaks HTTP, or with `scheme` ``https`` HTTP over TLS."""

    scheme: str
    host: str
    port: int
    authorization: str | None = None
    """The value of ``Proxy-Authorization``; a secret."""

    def __str__(self) -> str:
        """Its address, without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __repr__(self) -> str:
        return f"Proxy({self})"


def parse_proxy(text: str) -> Proxy:
    """Read the address of a proxy; without a scheme, ``http://`` is meant.

    User and password in it become its `Proxy.authorization`. Raises LocalProtocolError, which does not
    quote it, for another scheme and for what is no address.
    """
    if "://" not in text:
        text = f"http://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise LocalProtocolError("the URL of the proxy is not usable: not an address") from None
    scheme, host = parts.scheme, parts.hostname or ""
    if scheme not in _PORTS:
        hint = "set one of http:// or https://, or none for this host (no_proxy)"
        raise LocalProtocolError(f"a proxy of {scheme}:// cannot be used: {hint}")
    if not _HOST.fullmatch(host) or port == 0:
        raise LocalProtocolError("the URL of the proxy is not usable: no host, or an impossible one")
    authorization = None
    if parts.username is not None:
        user, password = parts.username, parts.password or ""
        if not (_USER.fullmatch(user) and _USER.fullmatch(password)):
            raise LocalProtocolError("user and password of the proxy must be percent-encoded")
        pair = b"%b:%b" % (unquote_to_bytes(user), unquote_to_bytes(password))
        authorization = f"Basic {b64encode(pair).decode()}"
    return Proxy(scheme, host, port or _PORTS[scheme], authorization)


def proxy_for(url: Url, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy by which `environ` wants `url` to be reached, or None.

    This computer itself is never reached by one. ``HTTP_PROXY`` in upper case has no effect beside
    ``REQUEST_METHOD``: in a CGI program it is what a client sent as a header. Raises LocalProtocolError
    for a proxy that cannot be used.
    """
    own = f"{url.scheme}_proxy"
    names = [own, own.upper(), "all_proxy", "ALL_PROXY"]
    if "REQUEST_METHOD" in environ and own == "http_proxy":
        names.remove("HTTP_PROXY")
    chosen = next((value for name in names if (value := environ.get(name, "").strip())), None)
    if chosen is None or is_loopback(url.host):
        return None
    exceptions = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    return None if bypasses(url, exceptions) else parse_proxy(chosen)


def is_loopback(host: str) -> bool:
    """Whether `host` is this computer, by a name that always means it or by an address."""
    host = host.removesuffix(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def bypasses(url: Url, exceptions: str) -> bool:
    """Whether `exceptions`, as in ``no_proxy``, name the host of `url`.

    A comma or blanks are between them. Each is ``*`` for everything, a name, which names those under
    it too, whether or not it begins with a dot or ``*.``, an address, or a network such as
    ``10.0.0.0/8``; and it may end with a port.
    """
    return any(_names(entry.lower(), url) for entry in re.split(r"[,\s]+", exceptions) if entry)


def _names(entry: str, url: Url) -> bool:
    if entry == "*":
        return True
    try:
        address = ip_address(url.host)
    except ValueError:
        address = None
    if address is not None:
        try:
            return address in ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass  # with a port, or a name
    name, colon, port = entry.rpartition(":")
    if colon and port.isascii() and port.isdigit():
        if int(port) != url.port:
            return False
        entry = name
    entry = entry.strip("[]")
    if address is not None:
        return entry == url.host
    host = url.host.removesuffix(".")  # that of the root means the same
    entry = entry.removeprefix("*").removeprefix(".").removesuffix(".")
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))
