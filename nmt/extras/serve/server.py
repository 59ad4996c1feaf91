"""The process that serves: its socket, the runs it loads, and how it ends."""

import ipaddress
import signal
import socket
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from nmt.config.parts import DeviceName
from nmt.decoding.warnings import WarningChecker
from nmt.errors import NmtError
from nmt.extras.serve.answers import ServedRun
from nmt.run.folder import load_run_config
from nmt.run.load import build_translator, opened


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port` (0: any free port). Connections wait.

    Raises:
        NmtError: the host is not an address of this machine, or the port cannot be used.
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, dualstack_ipv6=dual)
    except OSError as error:
        reason, advice = error.strerror or error, "choose others with --host and --port"
        raise NmtError(f"cannot serve at {host}, port {port} ({reason}); {advice}") from None


def load_runs(
    paths: Sequence[Path | None], *, device: DeviceName, overrides: Sequence[str]
) -> list[ServedRun]:
    """The runs with their best checkpoints, under names that differ.

    Args:
        paths: of runs or bundles; None is the newest run.
    """
    runs: dict[str, ServedRun] = {}
    for path in paths:
        with opened(path) as (run, checkpoint):
            data = load_run_config(run).data
            translator = build_translator([(run, checkpoint)], device=device, overrides=overrides)
            place = (path or run).resolve()
        name = base = place.stem if place.is_file() else place.name
        while name in runs:
            name = f"{base}-{len(runs) + 1}"
        checker = WarningChecker(translator.tokenizers, translator.vocabularies)
        runs[name] = ServedRun(name, data.src_language, data.tgt_language, translator, checker)
    return [*runs.values()]


def serve(app: FastAPI, listener: socket.socket, *, max_seconds: float) -> None:
    """Answer requests until SIGTERM or Ctrl-C, then those that were accepted, and return.

    Args:
        max_seconds: from SIGTERM to the end.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="error",  # a warning for each bad request would fill the disk
        access_log=False,
        server_header=False,
        proxy_headers=False,  # any client could name any address in them
        timeout_graceful_shutdown=ceil(max_seconds),
        http="h11",
        ws="none",
    )
    # After the last answer uvicorn raises the signal again, for the handlers that it found. These
    # let the command end normally.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    uvicorn.Server(config).run([listener])
