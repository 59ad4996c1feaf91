"""The command line: the table of the core's commands; finds one, imports it, and runs it.

`nmt --help` reads the tables alone, so that it appears at once. Every error that the user can fix
is one line on stderr, without a traceback.
"""

import gc
import io
import os
import platform
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NoReturn

import typer
import typer.core
import typer.main
from typer.models import CommandInfo

from nmt.errors import NmtError, NmtWarning, lacks_memory, printable
from nmt.plugins import FOLDER, Command, extras, import_object

COMMANDS = {
    "prepare": Command(
        "Data",
        "Read sentence pairs; clean, split, tokenize and encode them.",
        "nmt.commands.prepare:command",
    ),
    "train": Command(
        "Training",
        "Train a model on prepared data.",
        "nmt.commands.train:command",
    ),
    "translate": Command(
        "Translation",
        "Translate sentences, a file or stdin. Prints one line for each line of input. With "
        "--score, scores given translations.",
        "nmt.commands.translate:command",
    ),
    "evaluate": Command(
        "Results",
        "Score a run or a file of translations. Exit status 1 if a required score is not reached.",
        "nmt.commands.evaluate:command",
    ),
}
STEPS_OF_INIT = "  nmt init first\n  cd first\n"  # shown where an extra has `nmt init`
FIRST_STEPS = f"""\b
First steps:
{STEPS_OF_INIT}\
  nmt prepare -c sample.yaml
  nmt train -c sample.yaml
  nmt evaluate
  nmt translate "The dog sleeps."
"""


def all_commands() -> dict[str, Command]:
    """The commands of the core, and those of extras; "runs show" is in the group `runs`."""
    return COMMANDS | {
        name: row for extra in extras().values() for name, row in extra.commands.items()
    }


class HelpfulCommand(typer.core.TyperCommand):
    """A command whose help names each argument as its usage line does, without the name of its
    type.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        parameters: list[Any] = self.get_params(ctx)  # none is hidden
        for parameter in parameters:
            name, text = parameter.get_help_record(ctx)
            if parameter.param_type_name == "argument":
                name = parameter.metavar or name
            rows[parameter.param_type_name].append((name, text))
        for kind in filter(rows.get, rows):
            with formatter.section(f"{kind.capitalize()}s"):
                formatter.write_dl(rows[kind])


class Commands(typer.core.TyperGroup):
    """Commands from a table, each imported when it is called.

    Args:
        table: the commands by name; those of a group have two words.
    """

    def __init__(self, *, table: Mapping[str, Command] | None = None, **values: Any) -> None:
        super().__init__(**values)
        self.table = all_commands() if table is None else table
        if self.epilog and "init" not in self.table:
            self.epilog = self.epilog.replace(STEPS_OF_INIT, "")
        names: Any = dict.fromkeys(self.list_commands(None))
        self.commands = names  # typer suggests similar ones

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands and groups that `nmt --help` shows."""
        return [name for name, row in self.table.items() if " " not in name]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if (row := self.table.get(cmd_name)) is None:
            return None
        if not row.place:
            prefix = f"{cmd_name} "
            table = {
                name.removeprefix(prefix): member
                for name, member in self.table.items()
                if name.startswith(prefix)
            }
            return Commands(
                table=table,
                name=cmd_name,
                help=row.sentence,
                no_args_is_help=True,
                rich_markup_mode=None,
            )
        info = CommandInfo(
            name=cmd_name,
            callback=import_object(row.place),
            help=row.sentence,
            cls=HelpfulCommand,
        )
        return typer.main.get_command_from_info(
            info, pretty_exceptions_short=False, rich_markup_mode=None
        )

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each heading, in the order of their first commands."""
        rows = {name: self.table[name] for name in self.list_commands(ctx)}
        width = max(map(len, rows))
        for heading in dict.fromkeys(row.group for row in rows.values()):
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (f"{name:<{width}}", f"{row.sentence.partition('. ')[0].rstrip('.')}.")
                        for name, row in rows.items()
                        if row.group == heading
                    ]
                )

    def invoke(self, ctx: Any) -> Any:
        with errors_in_one_line():
            return super().invoke(ctx)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """An error in the block that the user can fix is one line, and exit status 1."""
    try:
        yield
    except NmtError as error:
        fail(str(error))
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(f"{FOLDER}."):
            raise
        fail(f"needs {error.name}, an extra that is deleted")
    except KeyboardInterrupt:
        _ignore_interrupts()
        fail("interrupted", status=130)
    except (MemoryError, OSError, RuntimeError) as error:
        if lacks_memory(error):
            fail(
                "out of memory; use smaller batches or a smaller model, or a machine with more "
                "memory"
            )
        if isinstance(error, OSError):
            fail_on_system_error(error)
        raise


def fail(text: str, status: int = 1) -> NoReturn:
    print(f"nmt: {text}", file=sys.stderr)
    sys.exit(status)


def fail_on_system_error(error: OSError) -> NoReturn:
    """Print an error of the operating system, such as a full disk, and exit."""
    try:
        flush_stdout()
    # discard the waiting output: otherwise Python tries again at exit, prints a traceback and
    # changes the status
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(error, BrokenPipeError):  # the reader closed the pipe, as `| head` does
        sys.exit(141)  # 128 + SIGPIPE, as a shell reports it
    fail(f"{error.filename or 'input or output'}: {error.strerror or error}")


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Neural machine translation with recurrent networks and attention.",
    epilog=FIRST_STEPS,
)


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, help="Print versions and device, and exit."),
    ] = False,
) -> None:
    if not version:
        return
    from nmt import __version__

    print(f"nmt {__version__}")
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    with suppress(ModuleNotFoundError):  # translating on a CPU needs no torch
        import torch

        from nmt.device import pick_device

        device = pick_device("auto")
        name = f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
        threads = torch.get_num_threads()
        cpu = torch.backends.cpu.get_cpu_capability()
        print(f"torch {torch.__version__}")
        print(f"device {device.type}{name}; CPU {cpu}, {threads} thread{'s' * (threads > 1)}")
    raise typer.Exit


def main() -> None:
    # Idle OpenMP threads spin. With the default, long time, training is many times slower as soon
    # as another program needs a core; this short time costs nothing on a quiet machine. It must be
    # set before torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # Searches for garbage would look through all that is imported, again and again (0.7 s of a
    # start), and once more at the exit.
    gc.set_threshold(20_000)
    if sys.stderr is None:  # it is closed: without this, messages for it would go to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    with errors_in_one_line():  # before and after the command, where typer's own handling ends
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", NmtWarning)
                warnings.showwarning = _show_warning
                app()
        finally:
            flush_stdout()  # here, where an error can still be reported
            gc.freeze()
            _ignore_interrupts()


def _ignore_interrupts() -> None:
    """Ctrl-C during the exit would print a traceback."""
    with suppress(ValueError):  # only the main thread may set it
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    text = f"nmt: warning: {printable(str(message))}\n"
    if category is not NmtWarning:
        text = warnings.formatwarning(message, category, filename, lineno)
    print(text, end="", file=sys.stderr)


def flush_stdout() -> None:
    """Write what waits in stdout, if it is open."""
    if sys.stdout is not None:
        sys.stdout.flush()
