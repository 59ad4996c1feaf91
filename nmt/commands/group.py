"""How all commands appear: their help in groups, their errors in one line. Without torch, so that
help appears at once.
"""

import io
import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import typer.core

from nmt.errors import NmtError, NmtWarning, lacks_memory, printable

OTHER = "Other commands"
MAX_SENTENCE = 200  # characters; a narrow terminal breaks the sentence into lines
BROKEN_PIPE_STATUS = 141  # 128 + SIGPIPE, as a shell reports it


class HelpfulCommand(typer.core.TyperCommand):
    """A command whose help names each argument as its usage line does, without the name of its
    type.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections "Arguments" and "Options"."""
        records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                records["Arguments"].append((parameter.metavar or record[0], record[1]))
            elif record is not None:
                records["Options"].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class HelpfulGroup(typer.core.TyperGroup):
    """Commands whose help is grouped by their `rich_help_panel`; nothing needs rich, which is slow
    to import.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group of commands, in the order of their first commands."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        width = max(map(len, commands))
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in commands.items():
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                heading = panel if isinstance(panel, str) else OTHER
                help_text = command.get_short_help_str(MAX_SENTENCE)
                groups.setdefault(heading, []).append((f"{name:<{width}}", help_text))
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


class Commands(HelpfulGroup):
    """The commands. An error that the user can fix is one line on stderr and exit status 1, without
    a traceback.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except NmtError as error:
            fail(str(error))
        except KeyboardInterrupt:
            fail_on_interrupt()
        except (MemoryError, RuntimeError) as error:
            fail_without_memory(error)
        except OSError as error:
            fail_on_system_error(error)


def fail(text: str, status: int = 1) -> NoReturn:
    """Print an error and exit."""
    print(f"nmt: {text}", file=sys.stderr)
    sys.exit(status)


def fail_without_memory(error: Exception) -> NoReturn:
    """Print that memory is too small, and exit. Another error is raised again."""
    if not lacks_memory(error):
        raise error
    fail("out of memory; use smaller batches or a smaller model, or a machine with more memory")


def fail_on_interrupt() -> NoReturn:
    """Exit after Ctrl-C."""
    _ignore_interrupts()
    fail("interrupted", status=130)


def fail_on_system_error(error: OSError) -> NoReturn:
    """Print an error of the operating system, such as a full disk, and exit."""
    if lacks_memory(error):
        fail_without_memory(error)
    try:
        flush_stdout()
    # discard the waiting output: otherwise Python tries again at exit, prints a traceback and
    # changes the status
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(error, BrokenPipeError):  # the reader closed the pipe, as `| head` does
        sys.exit(BROKEN_PIPE_STATUS)
    fail(f"{error.filename or 'input or output'}: {error.strerror or error}")


def run_app(app: Callable[[], object]) -> None:
    """Run the command line: as in `Commands.invoke`, an error before or after a command is one
    line, too.
    """
    # Idle OpenMP threads spin. With the default, long time, training is many times slower as soon
    # as another program needs a core; this short time costs nothing on a quiet machine. It must be
    # set before torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    if sys.stderr is None:  # it is closed: without this, messages for it would go to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", NmtWarning)
                warnings.showwarning = _show_warning
                app()
        finally:
            flush_stdout()  # here, where an error can still be reported
            _ignore_interrupts()
    except KeyboardInterrupt:
        fail_on_interrupt()
    except MemoryError as error:  # so early that no command has begun
        fail_without_memory(error)
    except OSError as error:
        fail_on_system_error(error)


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
