"""`nmt translate`: translates sentences, one output line per input line; or scores given
translations.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from nmt.commands.options import (
    BeamOption,
    DecodingOption,
    DeviceOption,
    JsonOption,
    decoding_overrides,
    options_from,
)
from nmt.decoding.batch_runner import TooLargeError
from nmt.decoding.forced import score_pairs
from nmt.decoding.output import (
    SOURCE_CUT,
    UNKNOWN_GIVEN,
    Answer,
    ScoreAnswer,
    TranslationAnswer,
    WarningChecker,
    WarningReport,
    check_output_files,
    draw_attention,
    open_output,
    score_lines,
    to_alignment,
    to_json,
    to_text,
)
from nmt.decoding.translator import Translation, Translator
from nmt.errors import DataError, NmtError
from nmt.files import explain_read_errors
from nmt.lines import stream_lines
from nmt.run.load import load_translator

NO_SEARCH = (
    "--score does not search; remove --n-best, --prefix, --align, --threshold and --attention"
)
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class OutputOptions:
    """With which runs to translate a file, and what to print."""

    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            help="Run folder or bundle; several translate together as an ensemble. Default: the "
            "newest in runs/.",
            metavar="RUN",
        ),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option("--file", help="File with one sentence per line; - is stdin.", metavar="FILE"),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write to this file instead of stdout.", metavar="FILE"
        ),
    ] = None
    beam: BeamOption = None
    set_: DecodingOption = None
    n_best: Annotated[
        int,
        typer.Option(
            "--n-best",
            min=1,
            max=10_000,
            help="Print the N best translations: number ||| text ||| score.",
            metavar="N",
        ),
    ] = 1
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", help="Begin each translation with this text.", metavar="TEXT"),
    ] = None
    align: Annotated[
        bool,
        typer.Option(
            "--align",
            help="Print the word alignment instead of the text: source-target pairs such as "
            "0-0 1-2.",
        ),
    ] = False
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            min=0,
            max=1,
            metavar="WEIGHT",
            help="With --align or --json: all pairs with at least this attention, not only the "
            "best for each target word.",
        ),
    ] = None
    score: Annotated[
        bool,
        typer.Option(
            "--score",
            help="Score given translations (each line: source, tab, translation): "
            "log-probability, tokens, perplexity.",
        ),
    ] = False
    as_json: JsonOption = False
    device: DeviceOption = "auto"

    @property
    def overrides(self) -> list[str]:
        """`decoding.key=value` each."""
        return decoding_overrides(self.set_, self.beam)

    def check(self) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        searches = self.n_best > 1 or self.prefix is not None or self.align
        if self.score and (searches or self.threshold is not None):
            raise typer.BadParameter(NO_SEARCH)
        if self.threshold is not None and not (self.align or self.as_json):
            raise typer.BadParameter("--threshold needs --align or --json")
        if self.align and self.n_best > 1:
            raise typer.BadParameter("--align prints one alignment per sentence; remove --n-best")
        if self.align and self.as_json:
            raise typer.BadParameter("--json contains the alignment already; remove --align")


@dataclass(frozen=True)
class TranslateOptions(OutputOptions):
    """What to translate, and also to draw."""

    sentences: Annotated[
        list[str] | None, typer.Argument(help="Sentences, each in quotes.", metavar="SENTENCE")
    ] = None
    attention: Annotated[
        Path | None,
        typer.Option(
            "--attention",
            help="Draw the attention of one sentence (.png, .svg, .pdf) or of all (.html).",
            metavar="FILE",
        ),
    ] = None

    def check(self) -> None:
        if self.score and self.attention is not None:
            raise typer.BadParameter(NO_SEARCH)
        if self.sentences and self.file is not None:
            raise typer.BadParameter("give sentences or --file, not both")
        super().check()


@options_from(TranslateOptions)
def command(**values: Any) -> None:
    """The command line."""
    options = TranslateOptions(**values)
    options.check()
    if sys.stdout is None and options.output is None:
        raise NmtError("stdout is closed; write into a file with -o")
    # All input and output is checked before the first sentence is translated.
    inputs = open_input(options.sentences or [], options.file)
    check_output_files(options.output, options.attention)
    translator = load_translator(
        options.run or None,
        device=options.device,
        overrides=options.overrides,
        n_best=options.n_best,
    )
    if options.prefix is not None:
        translator.prefix_ids([options.prefix])
    gc.freeze()  # to look through all that is loaded would take a second
    gc.enable()
    lines = output_lines(translator, inputs, options, options.attention)
    if inputs.is_keyboard:
        end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
        print(f"nmt: type a sentence, Enter translates it; {end}", file=sys.stderr)
    with open_output(options.output) as stream:
        for line in lines:
            stream.write(f"{line}\n")
            stream.flush()


@dataclass(frozen=True)
class InputTexts:
    """The sentences to translate.

    Attributes:
        batches: lists of sentences, in order.
        name: of the file or stream, for messages. unit: "line" or "sentence", for messages.
        is_keyboard: whether someone types the sentences and waits for each translation.
    """

    batches: Iterable[Sequence[str]]
    name: str
    unit: str
    is_keyboard: bool = False


def open_input(sentences: Sequence[str], file: Path | None) -> InputTexts:
    """The given sentences, the lines of `file`, or those of stdin (`-`, or neither sentences nor
    file).

    Raises:
        DataError: the file cannot be read, stdin is closed, or a sentence is not UTF-8.
    """
    if sentences:
        for number, sentence in enumerate(sentences, 1):
            if not sentence.isprintable() and any(
                "\ud800" <= character <= "\udfff" for character in sentence
            ):
                raise DataError(f"sentence {number}: not UTF-8")
        return InputTexts([sentences], "command line", "sentence")
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise DataError("stdin is closed; give sentences or --file")
        stream: Any = sys.stdin.buffer
        lines = _read_lines(stream, "stdin")
        return InputTexts(lines, "stdin", "line", is_keyboard=stream.isatty())
    try:
        return InputTexts(_read_lines(file.open("rb"), str(file)), str(file), "line")
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None


def _read_lines(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    with explain_read_errors(Path(name)), stream:
        yield from stream_lines(stream, name)


def output_lines(
    translator: Translator,
    inputs: InputTexts,
    options: OutputOptions,
    attention: Path | None = None,
) -> Iterator[str]:
    """The output for each sentence in turn, as soon as possible; with several translations of each,
    one that contains line feeds.

    Args:
        attention: the file to draw the attention into.

    Raises:
        ConfigError: the model has no attention, which an option needs.
        DataError: the input cannot be read any further, or a sentence does not fit into memory.
    """

    def to_line(answer: TranslationAnswer) -> str:
        if options.align:
            return to_alignment(answer, translator.tokenizers, options.threshold)
        if options.as_json:
            return to_json(answer, translator.tokenizers, options.threshold, options.n_best)
        return to_text(answer, options.n_best)

    if options.score:
        scored = _reported(_score(translator, inputs), inputs)
        return score_lines(scored, inputs.unit, as_json=options.as_json)
    answers = _reported(_translate(translator, inputs, options.n_best, options.prefix), inputs)
    return map(to_line, answers if attention is None else draw_attention(answers, attention))


def _reported(answers: Iterable[Answer[ResultT]], inputs: InputTexts) -> Iterator[Answer[ResultT]]:
    """Pass answers on, and report their warnings."""
    with WarningReport(inputs.unit, at_once=inputs.is_keyboard) as report:
        for answer in answers:
            yield answer
            report.add(answer)


def _translate(
    translator: Translator, inputs: InputTexts, n_best: int, prefix: str | None
) -> Iterator[TranslationAnswer]:
    """The n best translations of each sentence, in order."""
    checker, n_done = WarningChecker(translator.tokenizers, translator.vocabularies), 0

    def translate(texts: Sequence[str]) -> list[list[Translation]]:
        prefixes = None if prefix is None else [prefix] * len(texts)
        return translator.translate_n_best(texts, n_best, prefixes)

    for texts in inputs.batches:
        results = _results(translate, texts, inputs, n_done)
        for number, translations in enumerate(results, n_done + 1):
            yield Answer(number, translations, checker.warnings(translations[0]))
        n_done += len(texts)


def _score(translator: Translator, inputs: InputTexts) -> Iterator[ScoreAnswer]:
    """The score of each pair, in order; each text of `inputs` is a sentence, a tab, and its
    translation.

    Raises:
        DataError: a text is not a pair. All pairs before it are scored first.
    """
    score, n_done = partial(score_pairs, translator), 0
    for texts in inputs.batches:
        fields = [text.split("\t") for text in texts]
        n_valid = next((i for i, parts in enumerate(fields) if len(parts) != 2), len(fields))
        pairs = [(sentence, translation) for sentence, translation in fields[:n_valid]]
        for number, pair in enumerate(_results(score, pairs, inputs, n_done), n_done + 1):
            warnings = [SOURCE_CUT] * pair.src_cut + [UNKNOWN_GIVEN] * bool(pair.unknown)
            yield Answer(number, pair, warnings)
        n_done += n_valid
        if n_valid < len(fields):
            n_tabs = len(fields[n_valid]) - 1
            raise DataError(
                f"{inputs.name}, {inputs.unit} {n_done + 1}: found {n_tabs} tabs; write the "
                "sentence, one tab, and its translation"
            )


def _results(
    fn: Callable[[Sequence[ItemT]], list[ResultT]],
    items: Sequence[ItemT],
    inputs: InputTexts,
    n_before: int,
) -> Iterator[ResultT]:
    """`fn(items)`, one result after the other.

    Args:
        n_before: sentences of `inputs` before `items`, to number them in an error.

    Raises:
        DataError: an item does not fit into memory. The results of all items before it come first.
    """
    try:
        results = fn(items)
    except TooLargeError as error:
        yield from _results(fn, items[: error.index], inputs, n_before)
        raise DataError(
            f"{inputs.name}, {inputs.unit} {n_before + error.index + 1}: {error.reason}"
        ) from None
    yield from results
