"""`nmt serve`: a page that translates while the user types, and the same as a JSON API."""

import secrets
from collections.abc import Sequence
from pathlib import Path

from nmt.commands.options import options_from
from nmt.errors import ConfigError, NmtError
from nmt.extras.serve.options import ServeOptions

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@options_from(ServeOptions)
def command(options: ServeOptions) -> None:
    """The command line."""
    options.check()

    run(options)


def run(options: ServeOptions) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        NmtError: a package is missing, or the host or port cannot be used.
        ConfigError: the host is not this machine alone, and there is no token; or an override is
            invalid.
        CheckpointError: a run cannot be read.
    """
    try:
        from nmt.extras.serve.app import Limits, create_app
        from nmt.extras.serve.server import is_loopback, load_runs, open_socket, serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("nmt"):
            raise
        raise NmtError(
            f"nmt serve needs the package {error.name}; install it with `pip install 'nmt[serve]'`"
        ) from None
    if not is_loopback(options.host) and options.token is None:
        raise ConfigError(
            f"--host {options.host}: other machines can reach this address, so it needs a token: "
            "set NMT_TOKEN, for example to "
            f"{secrets.token_urlsafe(24)}"
        )
    limits = Limits(
        characters=options.max_characters,
        queue=options.queue,
        timeout=options.timeout,
    )
    with open_socket(options.host, options.port) as listener:
        paths: Sequence[Path | None] = options.folders or [None]
        runs = load_runs(paths, device=options.device, overrides=options.overrides)
        # A token protects better than the names of the host, which may stand behind a proxy.
        hosts = LOCAL_NAMES | {options.host} if options.token is None else None
        host = f"[{options.host}]" if ":" in options.host else options.host
        names = ", ".join(f"{run.name} ({run.src_language}-{run.tgt_language})" for run in runs)
        ready = f"nmt serves {names} at http://{host}:{listener.getsockname()[1]}/ until Ctrl-C"
        app = create_app(
            runs,
            limits,
            token=options.token,
            hosts=hosts,
            on_ready=lambda: print(ready, flush=True),
        )
        serve(app, listener, max_seconds=limits.timeout + 5)
