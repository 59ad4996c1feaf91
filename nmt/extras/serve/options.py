"""The options of `nmt serve`. Without torch, so that `nmt --help` answers at once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import BeamOption, DecodingOption, DeviceOption, decoding_overrides

MIN_TOKEN_LENGTH = 16


@dataclass(frozen=True)
class ServeOptions:
    """Which runs to serve, where, and within which limits: a field for each option of the command
    line.
    """

    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help=(
                "Run folders, or files of `nmt bundle`, side by side. Default: the newest in runs/."
            ),
            metavar="RUN",
        ),
    ] = None
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help=(
                "Address to serve at. The default is for this machine alone; addresses for "
                "other machines need a token."
            ),
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="Port to serve at; 0: any free port.", metavar="N"
        ),
    ] = 8000
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="NMT_TOKEN",
            show_envvar=True,
            help="Token that requests must have; at least 16 characters. Other users of this "
            "machine can see the option, "
            "but not the variable.",
            metavar="TEXT",
        ),
    ] = None
    max_characters: Annotated[
        int,
        typer.Option(
            "--max-characters",
            min=1,
            max=1_000_000,
            help="Largest request, in characters of text.",
            metavar="N",
        ),
    ] = 5000
    queue: Annotated[
        int,
        typer.Option(
            "--queue",
            min=1,
            max=100_000,
            help="Lines of text that may wait; further requests get 503.",
            metavar="N",
        ),
    ] = 256
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.01,
            max=3600,
            help="Seconds until a request is given up.",
            metavar="SECONDS",
        ),
    ] = 30.0
    beam: BeamOption = None
    set_: DecodingOption = None
    device: DeviceOption = "auto"

    @property
    def overrides(self) -> list[str]:
        """`decoding.key=value` each."""
        return decoding_overrides(self.set_, self.beam)

    def check(self) -> None:
        """Raises: typer.BadParameter if the token is too short."""
        if self.token is not None and len(self.token) < MIN_TOKEN_LENGTH:
            raise typer.BadParameter(
                f"the token has {len(self.token)} characters; use at least {MIN_TOKEN_LENGTH}"
            )
