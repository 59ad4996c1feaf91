"""Python imports this module at its start, if its folder is in PYTHONPATH: no process of the tests
connects to another machine.
"""

import socket
import sys
from ipaddress import ip_address
from typing import Any


def is_here(host: Any) -> bool:
    """Whether a host is this machine, and found without a name server."""
    text = host.decode() if isinstance(host, bytes) else host
    if text in (None, "", "localhost"):
        return True
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        is_internet = arguments[0].family in (socket.AF_INET, socket.AF_INET6)
        if is_internet and arguments[1] and not is_here(arguments[1][0]):
            raise PermissionError(f"a test connects to {arguments[1][0]}")
    elif event in (
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
    ) and not is_here(arguments[0]):
        try:
            ip_address(arguments[0])
        except ValueError:
            raise PermissionError(f"a test looks up {arguments[0]!r}") from None


sys.addaudithook(refuse_network)
