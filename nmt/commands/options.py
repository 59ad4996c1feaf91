"""Options that several commands have."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


class Split(StrEnum):
    dev = "dev"
    test = "test"


class Kept(StrEnum):
    best = "best"
    last = "last"


ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration, a YAML file.", metavar="FILE")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a key of the configuration, for example training.epochs=3.", metavar="KEY=VALUE"),
]
DeviceOption = Annotated[Device, typer.Option("--device", help="Where to compute.")]
BeamOption = Annotated[
    int | None, typer.Option("--beam", min=1, help="Hypotheses kept; 1 is greedy. Default: the run's configuration.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="The prepared folder, if it is not where it was in training.", metavar="DIR")
]
DecodingOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a key of decoding, for example decoding.length_penalty=0.8.", metavar="KEY=VALUE"),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but results and errors.")]

RequestT = TypeVar("RequestT")


def decoding_overrides(set_: Sequence[str] | None, beam: int | None) -> list[str]:
    """What --set and --beam say together."""
    return [*(set_ or ()), *([] if beam is None else [f"decoding.beam={beam}"])]


def taking(request: type[RequestT]) -> Callable[[Callable[[RequestT], None]], Callable[..., None]]:
    """A command whose options are the fields of a dataclass: the command is called with an instance of it."""

    def decorate(command: Callable[[RequestT], None]) -> Callable[..., None]:
        @wraps(command)
        def called(**options: Any) -> None:
            command(request(**options))

        vars(called)["__signature__"] = signature(request)
        return called

    return decorate
