"""`nmt serve`: a page that translates while the user types, and the same as a JSON API."""

import ipaddress
import secrets
import signal
import socket
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn

from nmt.commands.options import BeamOption, DecodingOption, DeviceOption
from nmt.config.load import decoding_overrides
from nmt.config.parts import DeviceName
from nmt.decoding.translator import n_hypotheses
from nmt.errors import ConfigError, NmtError
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.schemas import Run
from nmt.run.folder import load_run_config
from nmt.run.load import opened
from nmt.texts.load import load_text_translator

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
MIN_TOKEN_LENGTH = 16
MAX_SAMPLES = 32  # translations of a text from sampling


def command(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Run folders or bundles, side by side. Default: the newest in runs/.",
            metavar="RUN",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="Address to serve at. The default is for this machine alone; addresses for "
            "other machines need a token.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="Port to serve at; 0: any free port.", metavar="N"
        ),
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="NMT_TOKEN",
            show_envvar=True,
            help="Token that requests must have; at least 16 characters. Other users of this "
            "machine can see the option, but not the variable.",
            metavar="TEXT",
        ),
    ] = None,
    max_characters: Annotated[
        int,
        typer.Option(
            "--max-characters",
            min=1,
            max=1_000_000,
            help="Largest request, or file, in characters of text.",
            metavar="N",
        ),
    ] = 20_000,
    queue: Annotated[
        int,
        typer.Option(
            "--queue",
            min=1,
            max=100_000,
            help="Lines of text that may wait; further requests get 503.",
            metavar="N",
        ),
    ] = 256,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.01,
            max=3600,
            help="Seconds until a request is given up.",
            metavar="SECONDS",
        ),
    ] = 30.0,
    glossaries: Annotated[
        Path | None,
        typer.Option(
            "--glossaries",
            help="Folder for the glossaries that clients of DeepL make. Default: they last until "
            "the server ends.",
            metavar="FOLDER",
        ),
    ] = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Serve until SIGTERM or Ctrl-C, then answer the requests that were accepted, and return.

    Raises:
        typer.BadParameter: the token is too short.
        NmtError: the host, the port or the folder of glossaries cannot be used.
        ConfigError: the host is not this machine alone, and there is no token; or an override is
            invalid.
        CheckpointError: a run cannot be read.
    """
    # It needs other extras, the help of the command does not.
    from nmt.extras.serve.app import Api
    from nmt.extras.serve.routes import create_app

    if token is not None and len(token) < MIN_TOKEN_LENGTH:
        raise typer.BadParameter(
            f"the token has {len(token)} characters; use at least {MIN_TOKEN_LENGTH}"
        )
    if not is_loopback(host) and token is None:
        raise ConfigError(
            f"--host {host}: other machines can reach this address, so it needs a token: "
            f"set NMT_TOKEN, for example to {secrets.token_urlsafe(24)}"
        )
    with open_socket(host, port) as listener:
        overrides = decoding_overrides(set_, beam)
        runs = load_runs(folders or [None], device=device, overrides=overrides)
        address = f"{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        names = ", ".join(f"{run.info.name} ({run.info.source}-{run.info.target})" for run in runs)
        app = create_app(
            Api(runs, max_characters, queue, timeout, token, glossaries),
            # A token protects better than the names of the host, which may stand behind a proxy.
            hosts=LOCAL_NAMES | {host} if token is None else None,
            on_ready=lambda: print(
                f"nmt serves {names} at http://{address}/ until Ctrl-C\n"
                f"for other programs: http://{address}, or http://{address}/v2/translate",
                flush=True,
            ),
        )
        # After the last answer uvicorn raises the signal again, for the handlers that it found.
        # These let the command end normally.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        uvicorn.Server(_server_config(app, timeout)).run([listener])


def _server_config(app: Any, timeout: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="error",  # a warning for each bad request would fill the disk
        access_log=False,
        server_header=False,
        proxy_headers=False,  # any client could name any address in them
        timeout_graceful_shutdown=ceil(timeout + 5),  # seconds, from SIGTERM to the end
        http="h11",
        ws="none",
    )


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
            texts = load_text_translator([(run, checkpoint)], device=device, overrides=overrides)
            place = (path or run).resolve()
        base = place.stem if place.is_file() else place.name
        names = (base, *(f"{base}-{n}" for n in range(2, len(runs) + 2)))
        name = next(each for each in names if each not in runs)
        runs[name] = ServedRun(
            Run(
                name=name,
                source=data.src_language,
                target=data.tgt_language,
                translations=n_hypotheses(texts.sentence_translator.options, MAX_SAMPLES),
            ),
            texts,
        )
    return [*runs.values()]
