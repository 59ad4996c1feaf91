"""The command line: parse, call, print. Heavy imports are inside the commands, so that `nmt --help`
is fast.
"""

import gc
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.evaluate_options import EvaluateOptions
from nmt.commands.group import Commands, HelpfulCommand, run_app
from nmt.commands.options import (
    BeamOption,
    ConfigOption,
    DataOption,
    DecodingOption,
    DeviceOption,
    JsonOption,
    QuietOption,
    RunArgument,
    RunOrBundleArgument,
    SetOption,
    decoding_overrides,
    options_from,
)
from nmt.commands.translate_options import TranslateOptions
from nmt.config.parts import PointerName
from nmt.errors import NmtError
from nmt.extras.augment.options import AugmentOptions
from nmt.extras.serve.options import ServeOptions

# The groups of `nmt --help`.
DATA, TRAIN, TRANSLATE, RESULTS, SETUP = "Data", "Training", "Translation", "Results", "Set-up"
FIRST_STEPS = """\b
First steps:
  nmt init first
  cd first
  nmt prepare -c sample.yaml
  nmt train -c sample.yaml
  nmt evaluate
  nmt translate "The dog sleeps."
"""

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Neural machine translation with recurrent networks and attention.",
    epilog=FIRST_STEPS,
)


def subcommand(group: str, help_text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command in one of the groups of `nmt --help`, which shows the first sentence of its
    help.
    """
    return app.command(help=help_text, rich_help_panel=group, cls=HelpfulCommand)


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print versions and device, and exit.")
    ] = False,
) -> None:
    """Options before the command."""
    if version:
        from nmt.commands import version as version_command

        print(version_command.describe())
        raise typer.Exit


@subcommand(
    DATA,
    (
        "Write a starter project. With --data, a configuration for your own sentence pairs; "
        "without, "
        "the sample of nmt."
    ),
)
def init(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write; . is the current one.", metavar="DIR")
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help=(
                "Table with a pair per line (tabs, commas; also .gz, .zip); or, given twice, "
                "two files with a sentence per line."
            ),
            metavar="FILE",
        ),
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            "--direction",
            help="Source and target language, for example en-de. Default: as the data looks.",
            metavar="A-B",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    from nmt.extras.init import command

    project = command.run(folder, data or (), direction)
    print(_to_json(project.to_dict()) if as_json else project.to_text())


@subcommand(DATA, "Read sentence pairs; clean, split, tokenize and encode them.")
def prepare(
    config: ConfigOption,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder to write. Default: data/prepared/NAME.", metavar="DIR"
        ),
    ] = None,
    set_: SetOption = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace other data in the folder, once the new data is complete."
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    from nmt.commands import prepare as command
    from nmt.config.load import load

    manifest = command.run(
        load(config, set_ or ()), output, overwrite=overwrite, progress=False if quiet else None
    )
    if as_json or not quiet:
        print(_to_json(manifest) if as_json else command.summary(manifest))


@subcommand(
    DATA,
    (
        "Add synthetic pairs to prepared training data. Trained runs translate them; the result "
        "is a "
        "new prepared folder."
    ),
)
@options_from(AugmentOptions)
def augment(options: AugmentOptions) -> None:
    options.check()
    from nmt.extras.augment import command

    manifest = command.run(options, progress=False if options.quiet else None)
    if options.as_json or not options.quiet:
        print(_to_json(manifest) if options.as_json else command.summary(manifest))


@subcommand(TRAIN, "Train a model on prepared data.")
def train(
    config: ConfigOption,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Run folder to write. Default: runs/NAME.", metavar="RUN"
        ),
    ] = None,
    set_: SetOption = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue from the last checkpoint, or start if there is none."
        ),
    ] = False,
    device: DeviceOption = "auto",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the configuration, the model's sizes, and the estimated time and memory.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    from nmt.config.load import load

    checked_config = load(config, set_ or ())
    if dry_run:
        from nmt.config.yaml_text import dump
        from nmt.training import dry_run as command_dry_run

        print(f"{dump(checked_config)}\n{command_dry_run.describe(checked_config, output, device)}")
    else:
        from nmt.commands import train as command

        command.run(checked_config, output, resume=resume, device=device, quiet=quiet)


@subcommand(
    TRANSLATE,
    (
        "Translate sentences, a file or stdin. Prints one line for each line of input. With "
        "--score, "
        "scores given translations."
    ),
)
@options_from(TranslateOptions)
def translate(options: TranslateOptions) -> None:
    options.check()
    if sys.stdout is None and options.output is None:
        raise NmtError("stdout is closed; write into a file with -o")
    if options.has_parts:
        from nmt.extras.corpus import command as translate_parts

        translate_parts.run(options)
        return
    with _without_garbage_collection():
        from nmt.commands import translate as command

        translator, inputs = command.load(options)
    command.run(translator, inputs, options)


@subcommand(TRANSLATE, "Serve a page that translates while you type, and a JSON API.")
@options_from(ServeOptions)
def serve(options: ServeOptions) -> None:
    options.check()
    from nmt.extras.serve import command

    command.run(options)


@subcommand(
    TRANSLATE,
    (
        "Pack all that translating needs into one file. `nmt translate --run FILE` and `nmt.load` "
        "take it."
    ),
)
def bundle(
    run: RunArgument = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write. Default: RUN.nmt.", metavar="FILE"),
    ] = None,
) -> None:
    from nmt.extras.share import bundle_command as command

    print(command.run(run, output))


@subcommand(
    TRANSLATE,
    (
        "Publish a run on the Hugging Face hub. With a model card; its access token comes from `hf "
        "auth login`."
    ),
)
def push(
    run: Annotated[
        Path, typer.Argument(help="Run folder, or a file of `nmt bundle`.", metavar="RUN")
    ],
    repository: Annotated[
        str, typer.Argument(help="Repository on the hub, such as me/en-de.", metavar="USER/NAME")
    ],
    license_id: Annotated[
        str | None,
        typer.Option(
            "--license", help="License of the model, for its card, such as cc-by-2.0.", metavar="ID"
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Only you can see the repository.")
    ] = False,
) -> None:
    from nmt.extras.share import push as command

    print(command.run(run, repository, license_id=license_id, private=private))


@subcommand(
    TRANSLATE, "Get a run from the Hugging Face hub. It translates as the run that was published."
)
def pull(
    repository: Annotated[
        str,
        typer.Argument(
            help="Repository on the hub; also a branch, tag or commit of it.",
            metavar="USER/NAME[@REVISION]",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write. Default: runs/NAME.", metavar="DIR"),
    ] = None,
) -> None:
    from nmt.extras.share import pull as command

    print(command.run(repository, output))


@subcommand(
    TRANSLATE, "Export a run as ONNX. The folder has a translator that needs neither nmt nor torch."
)
def export(
    run: RunOrBundleArgument = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write. Default: RUN-onnx.", metavar="DIR"),
    ] = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
) -> None:
    from nmt.extras.export import command

    print(command.run(run, output, decoding_overrides(set_, beam)))


@subcommand(
    RESULTS,
    "Score a run or a file of translations. Exit status 1 if a required score is not reached.",
)
@options_from(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> None:
    options.check()
    from nmt.commands import evaluate as command

    results = command.run(options)
    print(
        _to_json(results.to_dict())
        if options.as_json
        else results.to_table(details=options.details)
    )
    if failures := results.failures(options.gate):
        raise NmtError("; ".join(failures))


@subcommand(
    RESULTS,
    "Show what a run is. Configuration, data, model, curves, scores, size, and the next commands.",
)
def inspect(
    run: RunOrBundleArgument = None,
    as_json: JsonOption = False,
    card: Annotated[
        bool,
        typer.Option(
            "--card", help="Print a model card: Markdown, with the metadata of model hubs."
        ),
    ] = False,
) -> None:
    if card and as_json:
        raise typer.BadParameter("give --card or --json, not both")
    from nmt.extras.runs import inspect as command

    facts = command.run(run)
    if card:
        print(command.card(facts), end="")
    else:
        print(_to_json(facts) if as_json else command.describe(facts))


@subcommand(RESULTS, "List runs as a table. Model, steps, scores, size and date of each.")
def runs(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder that holds runs. Default: runs.", metavar="DIR")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    from nmt.extras.runs import table as command

    rows = command.run(folder)
    print(_to_json(rows) if as_json else command.to_table(rows))


@subcommand(
    TRAIN,
    (
        "Train a finished run again and compare the weights. Exit status 1 if they differ. "
        "Repeat it "
        "to continue."
    ),
)
def reproduce(
    run: RunArgument = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Run folder to write. Default: RUN-reproduced.", metavar="DIR"
        ),
    ] = None,
    data: DataOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    from nmt.extras.runs import reproduce as command

    result = command.run(run, output, data=data, device=device, quiet=quiet)
    print(_to_json(result.to_dict()) if as_json else result.to_text())
    if not result.is_equal:
        raise NmtError(result.failure())


@subcommand(
    TRAIN,
    (
        "Average the weights of a run's kept checkpoints. The average is used if it is better on "
        "the "
        "dev set."
    ),
)
def average(
    run: RunArgument = None,
    kept: Annotated[
        PointerName, typer.Option("--kept", help="Average the best or the last kept checkpoints.")
    ] = "best",
    device: DeviceOption = "auto",
) -> None:
    from nmt.device import set_up_device
    from nmt.extras.runs import average as command

    print(command.run(run, kept=kept, device=set_up_device(device)))


@subcommand(
    TRANSLATE,
    (
        "Learn a lexicon from a run's data. It translates unknown words and makes "
        "decoding.shortlist "
        "possible."
    ),
)
def lexicon(
    run: RunArgument = None,
    aligner: Annotated[
        bool,
        typer.Option(
            "--aligner", help="Align the words statistically, not by the run's attention."
        ),
    ] = False,
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs", min=1, help="Use this many random training pairs. Default: all.", metavar="N"
        ),
    ] = None,
    data: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    from nmt.extras.lexicon import command

    print(command.run(run, aligner=aligner, pairs=pairs, data=data, device=device))


@subcommand(
    TRANSLATE,
    (
        "Store a run's training pairs in the run, so that translation can look at similar ones: "
        "decoding.neighbors."
    ),
)
def neighbors(run: RunArgument = None, data: DataOption = None) -> None:
    from nmt.extras.neighbors import command

    print(command.run(run, data=data))


@subcommand(
    SETUP,
    (
        "Test this installation. Trains a tiny model with each kind of attention. Exit status 1 if "
        "one does not learn."
    ),
)
def selftest(
    device: DeviceOption = "auto",
    attentions: Annotated[
        list[str] | None,
        typer.Option("--attention", help="Test only this one; may be repeated.", metavar="NAME"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    from nmt.extras.selftest import command

    results = []
    iterator = command.run(
        device, attentions or ()
    )  # checks the arguments before the header is printed
    if not as_json:
        print(command.header(device))
    for result in iterator:
        results.append(result)
        if not as_json:
            print(result.to_row(), flush=True)
    if as_json:
        print(_to_json([result.to_dict() for result in results]))
    if failed := [result.attention for result in results if not result.learned]:
        raise NmtError(f"has not learned to copy and reverse: {', '.join(failed)}")


@subcommand(
    SETUP,
    (
        "Check all files of a run, a bundle or prepared data. Says what is damaged, and what to "
        "do; "
        "exit status 1 if one is damaged."
    ),
)
def doctor(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help=(
                "Run folder, a file of `nmt bundle`, or prepared folder. Default: the newest in "
                "runs/."
            ),
            metavar="RUN|DATA",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    from nmt.extras.runs import check as command

    findings = command.run(folder)
    print(
        _to_json([*map(asdict, findings)])
        if as_json
        else "\n".join(finding.to_row() for finding in findings)
    )
    if text := command.failure(findings):
        raise NmtError(text)


@subcommand(
    SETUP,
    (
        "Print the JSON schema of configurations. With it, editors complete, explain and check the "
        "keys."
    ),
)
def schema() -> None:
    from nmt.extras.init import schema as command

    print(_to_json(command.run()))


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Import and load without the garbage collector, and exempt all that is loaded from it:
    scanning it takes a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main() -> None:
    """The entry point."""
    run_app(app)


def _to_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
