"""Which addresses a webhook may reach: public ones, and networks that the installation allows."""

import ipaddress
import socket
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from pocs.common.errors import FieldError, InvalidInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class AddressRefused(Exception):
    """The address must not be reached from here; the message says why."""


def check_url(url: str) -> str:
    """The URL of a webhook, trimmed; InvalidInput at `/url` for what no webhook may have.

    Names are resolved, and their addresses judged, at each delivery; here only what is written is judged.
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except (ValueError, UnicodeError):
        raise _refused("invalid", _("This is no web address.")) from None
    allowed = ("https", "http") if settings.PHASEGATE_WEBHOOK_ALLOW_HTTP else ("https",)
    if parts.scheme not in allowed or not host or len(url) > 500 or any(ord(char) <= 32 for char in url):
        raise _refused("scheme", _("Give an address that begins with https://."))
    if parts.username is not None or parts.password is not None:
        raise _refused("credentials", _("An address holds no name or password; the signature authenticates."))
    if parts.fragment or port == 0:
        raise _refused("invalid", _("This is no web address."))
    literal = _literal(host)
    if literal is not None and not is_allowed(literal):
        raise _refused("internal", _("Internal addresses are not reached from here."))
    if literal is None and (
        "." not in host.rstrip(".") or host.rstrip(".").endswith((".local", ".internal"))
    ):
        raise _refused("internal", _("Internal names are not reached from here."))
    return url


def resolve(host: str, port: int) -> str:
    """One address of the host, as text to connect to; AddressRefused if any of them is not allowed.

    The caller connects to the address returned and never asks for the name again, so that a name
    cannot lead elsewhere between the check and the connection.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AddressRefused(f"{host} cannot be resolved") from error
    addresses = [ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in found]
    for address in addresses:
        if not is_allowed(address):
            raise AddressRefused(f"{host} leads to the internal address {address}")
    if not addresses:
        raise AddressRefused(f"{host} has no address")
    return str(addresses[0])


def is_allowed(address: Address) -> bool:
    """Whether the address is public, or in a network of PHASEGATE_WEBHOOK_ALLOWED_NETWORKS."""
    candidates = _meant(address)
    networks = [ipaddress.ip_network(item) for item in settings.PHASEGATE_WEBHOOK_ALLOWED_NETWORKS]
    return all(
        (item.is_global and not item.is_multicast) or any(item in network for network in networks)
        for item in candidates
    )


def _meant(address: Address) -> list[Address]:
    """The address with every IPv4 address that it carries inside."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    meant: list[Address] = [address]
    if address.sixtofour is not None:
        meant.append(address.sixtofour)
    if address.teredo is not None:
        meant += address.teredo
    if address in _NAT64:
        meant.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return meant


def _literal(host: str) -> Address | None:
    """The address that a host name is; the odd spellings of IPv4 (`127.1`, `0x7f000001`) count as well."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if host.replace(".", "").replace("x", "").isalnum() and host[:1].isdigit():
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    return None


def _refused(code: str, detail: str) -> InvalidInput:
    return InvalidInput(detail, [FieldError("/url", code, detail)])
