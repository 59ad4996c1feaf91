"""The process that serves: its socket, the runs it loads, and how it starts and ends."""

import errno
import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from nmt.config.parts import DeviceName
from nmt.decoding.output import WarningChecker
from nmt.errors import NmtError
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.guard import BODY_SECONDS
from nmt.extras.serve.protocol import MAX_HEADER_BYTES, BoundedProtocol
from nmt.run.folder import load_run_config
from nmt.run.load import build_translator, opened

# connections that are accepted at a time: a burst of them must not take all files that may be open
MAX_WAITING = 128


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port` (0: any free port); from now on the port is taken,
    and connections wait.

    Raises:
        NmtError: the host is not an address of this machine, or the port cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise NmtError(
            f"--host {host}: not an address of this machine ({error.strerror or error})"
        ) from None
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name != "nt":  # there this option would let two servers share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise NmtError(
                f"port {port} of {host} is in use; choose another with --port, or 0 for any "
                "free "
                "one"
            ) from None
        reason = error.strerror or error
        raise NmtError(
            f"cannot serve at {host}, port {port} ({reason}); choose others with --host and --port"
        ) from None
    return listener


def load_runs(
    paths: Sequence[Path | None], *, device: DeviceName, overrides: Sequence[str]
) -> list[ServedRun]:
    """The runs with their best checkpoints, under names that differ. A path is a run or a bundle;
    None is the newest run.

    Raises: as `nmt.run.load.load_translator`.
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


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


def serve(
    app: FastAPI, listener: socket.socket, *, max_seconds: float, on_ready: Callable[[], None]
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; then refuse new ones, answer those that were
    accepted, and return.

    Args:
        max_seconds: from SIGTERM to the end.
        on_ready: called when the server answers.
    """

    class Protocol(BoundedProtocol):
        exchange_seconds = max_seconds + BODY_SECONDS

    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="error",  # a warning for each bad request would fill the disk
        access_log=False,
        server_header=False,
        proxy_headers=False,  # any client could name any address in them
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        backlog=MAX_WAITING,
        timeout_graceful_shutdown=ceil(max_seconds),
        http=Protocol,
        ws="none",
    )
    # After the last answer uvicorn raises the signal again, for the handlers that it found. These
    # let the command end normally.
    previous = {
        number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        _Server(config, on_ready).run([listener])
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
