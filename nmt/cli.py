"""The command line: parse, call, print, exit status. Whatever is heavy is imported inside the commands."""

import gc
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from nmt.commands.evaluate_options import EvaluateOptions
from nmt.commands.options import (
    BeamOption,
    ConfigOption,
    DataOption,
    DecodingOption,
    Device,
    DeviceOption,
    JsonOption,
    Kept,
    QuietOption,
    SetOption,
    decoding_overrides,
    taking,
)
from nmt.errors import NmtError, lacks_memory

READER_LEFT = 141  # the exit status of all that SIGPIPE ends


class Commands(typer.core.TyperGroup):
    """The commands; a fault of the user's is one line on stderr and exit status 1, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except NmtError as error:
            fail(str(error))
        except KeyboardInterrupt:
            fail("interrupted", status=130)
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
            fail("out of memory; lower the sizes of the model or of its batches, or take a larger machine")
        except OSError as error:
            refuse(error)


def fail(text: str, status: int = 1) -> NoReturn:
    """Say what is wrong, and leave."""
    print(f"nmt: {text}", file=sys.stderr)
    sys.exit(status)


def refuse(error: OSError) -> NoReturn:
    """Say what the system would not do, such as to write to a full disk, and leave."""
    try:
        _flush_stdout()
    except OSError:  # forget what waits in it, lest Python try at its exit, say so at length, and take a status of its own
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(error, BrokenPipeError):  # the reader has had enough, as `| head` does
        sys.exit(READER_LEFT)
    fail(f"{error.filename or 'input or output'}: {error.strerror or error}")


def _flush_stdout() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Neural machine translation with recurrent networks and attention.",
    epilog='A first run: nmt prepare -c configs/sample.yaml, nmt train -c configs/sample.yaml, nmt evaluate, nmt translate "..."',
)


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options that stand before a command."""
    if version:
        from nmt import __version__

        print(f"nmt {__version__}")
        raise typer.Exit


@app.command(help="Read sentence pairs, clean, split, tokenise and encode them.")
def prepare(
    config: ConfigOption,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The prepared folder.", metavar="DIR")] = None,
    set_: SetOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what the folder holds, once the new is complete.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    from nmt.commands import prepare as command
    from nmt.config.load import load

    manifest = command.run(load(config, set_ or ()), output, overwrite=overwrite, progress=False if quiet else None)
    if as_json:
        _print_json(manifest)
    elif not quiet:
        print(command.summary(manifest))


@app.command(help="Train a model on prepared data.")
def train(
    config: ConfigOption,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The run folder.", metavar="RUN")] = None,
    set_: SetOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint, or start where there is none.")] = False,
    device: DeviceOption = Device.auto,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the configuration, the sizes and what an epoch takes, and train nothing.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    from nmt.commands import train as command
    from nmt.config.load import load
    from nmt.config.yaml_text import dump

    checked = load(config, set_ or ())
    if dry_run:
        from nmt.commands import dry_run as forecast

        print(f"{dump(checked)}\n{forecast.describe(checked, output, device.value)}")
    else:
        command.run(checked, output, resume=resume, device=device.value, quiet=quiet)


@app.command(help="Translate sentences, a file, or stdin: one line for each line. Or score given translations.")
def translate(
    sentences: Annotated[list[str] | None, typer.Argument(help="Sentences; quote each.", metavar="[SENTENCE]...")] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option("--run", help="The run folder; the one trained last if not given. Several translate together.", metavar="RUN"),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", help="A file with a sentence a line; - is stdin.", metavar="FILE")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write here rather than to stdout.", metavar="FILE")] = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
    n_best: Annotated[
        int, typer.Option("--n-best", min=1, max=10_000, help="So many translations of each: number ||| text ||| score.")
    ] = 1,
    prefix: Annotated[str | None, typer.Option("--prefix", help="What each translation begins with.", metavar="TEXT")] = None,
    align: Annotated[
        bool, typer.Option("--align", help="Print which word was made from which rather than the text: 0-0 1-2, source first.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", min=0, max=1, help="With --align or --json: all pairs with this attention, not each word's best alone."
        ),
    ] = None,
    attention: Annotated[
        Path | None,
        typer.Option("--attention", help="Draw the attention: of one sentence (.png, .svg, .pdf) or all (.html).", metavar="FILE"),
    ] = None,
    score: Annotated[
        bool,
        typer.Option("--score", help="Lines are a source, a tab, its translation: print log-probability, tokens and perplexity."),
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = Device.auto,
) -> None:
    if score and (n_best > 1 or prefix is not None or align or threshold is not None or attention is not None):
        raise typer.BadParameter("--score takes translations as they are given; leave out what is about making them")
    if (threshold is not None and not (align or as_json)) or (align and (n_best > 1 or as_json)):
        raise typer.BadParameter(
            "--align prints one line of pairs; --threshold goes with it or --json, and --json has the pairs too"
        )
    if sys.stdout is None and output is None:
        raise NmtError("stdout is closed; write into a file with -o")
    with _loading():
        from nmt.commands import translate as command
        from nmt.run.load import load_translator

        source = command.open_source(sentences or [], file)
        command.check_targets(output, attention)
        overrides = decoding_overrides(set_, beam)
        translator = load_translator(run or None, device=device.value, overrides=overrides, n_best=n_best)
    if score:
        lines = command.score_lines(command.noting(command.run_score(translator, source), source), source, as_json=as_json)
    else:
        form = command.in_json(translator, n_best, threshold) if as_json else command.in_text(n_best)
        form = command.in_pharaoh(translator, threshold) if align else form
        answers = command.noting(command.run(translator, source, n_best=n_best, prefix=prefix), source)
        lines = map(form, answers if attention is None else command.draw_attention(answers, attention))
    command.greet(source)
    command.write(lines, output)


@app.command(help="Score a run, or a file of translations. Exit status 1 if a score is not what was asked for.")
@taking(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> None:
    options.check()
    from nmt.commands import evaluate as command

    results = command.run(options)
    if options.as_json:
        _print_json(results.to_dict())
    else:
        print(results.to_table(details=options.details))
    if failures := results.failures(options.gate):
        raise NmtError("; ".join(failures))


@app.command(help="Average the weights of a run's kept checkpoints, for use if they do better on the dev set.")
def average(
    run: Annotated[Path | None, typer.Argument(help="The run folder; the one trained last if not given.", metavar="[RUN]")] = None,
    kept: Annotated[Kept, typer.Option("--kept", help="Which of the kept checkpoints.")] = Kept.best,
    device: DeviceOption = Device.auto,
) -> None:
    from nmt.commands import average as command
    from nmt.model.device import pick_device

    print(command.run(run, kept=kept.value, device=pick_device(device.value)))


@app.command(help="Learn a lexicon from a run's attention over its training data, for unknown words and decoding.shortlist.")
def lexicon(
    run: Annotated[Path | None, typer.Argument(help="The run folder; the one trained last if not given.", metavar="[RUN]")] = None,
    pairs: Annotated[
        int | None, typer.Option("--pairs", min=1, help="Read so many training pairs, drawn at random. Default: all.")
    ] = None,
    data: DataOption = None,
    device: DeviceOption = Device.auto,
) -> None:
    from nmt.commands import lexicon as command

    print(command.run(run, pairs=pairs, prepared=data, device=device.value))


@app.command(help="Check this installation: learn a small task with each attention. Exit status 1 if one fails to learn it.")
def selftest(
    device: DeviceOption = Device.auto,
    attentions: Annotated[
        list[str] | None, typer.Option("--attention", help="Check this one alone; may be repeated.", metavar="NAME")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    from nmt.commands import selftest as command

    outcomes, checked, failed = command.run(device.value, attentions or ()), [], []
    if not as_json:
        print(command.header(device.value))
    for outcome in outcomes:
        checked.append(outcome.to_dict())
        failed += [] if outcome.learned else [outcome.attention]
        if not as_json:
            print(outcome.to_row(), flush=True)
    if as_json:
        _print_json(checked)
    if failed:
        raise NmtError(f"has not learned to copy and reverse: {', '.join(failed)}")


@contextmanager
def _loading() -> Iterator[None]:
    """Import and load. None of it is garbage: to look through it again and again, and once more at the end, takes a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main() -> None:
    """The entry point."""
    # OpenMP threads that wait spin. For long, as they do by default, it makes training many times slower as soon as another program
    # wants a core; this short, it costs nothing on a quiet machine. To be set before torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    if sys.stderr is None:  # closed; what is said to it must not go to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        try:
            app()
        finally:
            _flush_stdout()  # here, where a fault can still be told
    except OSError as error:
        refuse(error)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))
