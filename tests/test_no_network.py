"""No test reaches another machine, nor does a process that it starts; see `no_network`."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

FAR = "192.0.2.1"  # no machine has this address


@pytest.mark.parametrize(
    "reach",
    [
        lambda: socket.create_connection((FAR, 80), timeout=1),
        lambda: socket.create_connection(("example.com", 80), timeout=1),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (FAR, 80)),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect_ex((FAR, 80)),
        lambda: socket.gethostbyname("example.com"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_other_machines_are_out_of_reach(reach: Callable[[], object]) -> None:
    with pytest.raises(PermissionError, match=r"a test (connects to|looks up)"):
        reach()


def test_processes_are_cut_off_too() -> None:
    script = f"import socket; socket.create_connection(('{FAR}', 80), timeout=1)"
    result = subprocess.run(
        [sys.executable, "-c", script], env=os.environ, capture_output=True, text=True, check=False
    )
    assert "PermissionError: a test connects to 192.0.2.1" in result.stderr
