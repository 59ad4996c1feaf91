"""`nmt translate`: translates sentences, one output line per input line; or scores given
translations.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

from nmt.commands.options import options_from
from nmt.commands.translate_options import TranslateOptions
from nmt.decoding.batch_runner import TooLargeError
from nmt.decoding.forced import ScoredPair, score_pairs
from nmt.decoding.output import (
    SOURCE_CUT,
    UNKNOWN_GIVEN,
    Answer,
    ScoreAnswer,
    TranslationAnswer,
    WarningChecker,
    check_output_files,
    draw_attention,
    report_warnings,
    score_lines,
    to_alignment,
    to_json,
    to_text,
    write_output,
)
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import DataError, NmtError
from nmt.lines import stream_lines
from nmt.run.load import load_translator

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@options_from(TranslateOptions)
def command(options: TranslateOptions) -> None:
    """The command line."""
    options.check()
    if sys.stdout is None and options.output is None:
        raise NmtError("stdout is closed; write into a file with -o")
    if options.has_parts:
        from nmt.extras.corpus import command as translate_parts

        translate_parts.run(options)
        return
    translator, inputs = load(options)
    gc.freeze()  # to look through all that is loaded would take a second
    gc.enable()
    run(translator, inputs, options)


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
        return InputTexts(
            _read_lines(stream, "stdin"), "stdin", "line", is_keyboard=stream.isatty()
        )
    try:
        return InputTexts(_read_lines(file.open("rb"), str(file)), str(file), "line")
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None


def _read_lines(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    try:
        with stream:
            yield from stream_lines(stream, name)
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror})") from None


def load(options: TranslateOptions) -> tuple[Translator, InputTexts]:
    """Open the input and load the model, and check both before the first sentence is translated.

    Raises:
        CheckpointError: a run or its checkpoint cannot be read, or the vocabularies of an ensemble
            differ.
        ConfigError: an override is invalid, or the beam is narrower than `n_best`.
        DataError: the input cannot be read, an output cannot be written, or a word of the prefix is
            not in the vocabulary.
    """
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
    return translator, inputs


def run(translator: Translator, inputs: InputTexts, options: TranslateOptions) -> None:
    """Translate or score all sentences, and write a line for each as soon as possible.

    Raises:
        ConfigError: the model has no attention, which an option needs.
        DataError: the input cannot be read any further, a sentence does not fit into memory, or an
            output cannot be written.
    """
    lines = output_lines(translator, inputs, options)
    if inputs.is_keyboard:
        end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
        print(f"nmt: type a sentence, Enter translates it; {end}", file=sys.stderr)
    write_output(lines, options.output)


def output_lines(
    translator: Translator, inputs: InputTexts, options: TranslateOptions
) -> Iterator[str]:
    """The output for each sentence in turn; with several translations of each, one that contains
    line feeds.

    Raises: as `run`.
    """

    def to_line(answer: TranslationAnswer) -> str:
        if options.align:
            return to_alignment(answer, translator.tokenizers, options.threshold)
        if options.as_json:
            return to_json(answer, translator.tokenizers, options.threshold, options.n_best)
        return to_text(answer, options.n_best)

    unit, at_once = inputs.unit, inputs.is_keyboard
    if options.score:
        scored = report_warnings(_score(translator, inputs), unit, at_once=at_once)
        return score_lines(scored, unit, as_json=options.as_json)
    translated = _translate(translator, inputs, options.n_best, options.prefix)
    answers = report_warnings(translated, unit, at_once=at_once)
    return map(
        to_line,
        answers if options.attention is None else draw_attention(answers, options.attention),
    )


def _translate(
    translator: Translator, inputs: InputTexts, n_best: int, prefix: str | None
) -> Iterator[TranslationAnswer]:
    """The n best translations of each sentence, in order."""
    checker = WarningChecker(translator.tokenizers, translator.vocabularies)

    def translate(texts: Sequence[str]) -> list[list[Translation]]:
        return translator.translate_n_best(
            texts, n_best, None if prefix is None else [prefix] * len(texts)
        )

    n_done = 0
    for texts in inputs.batches:
        for number, translations in enumerate(
            _results(translate, texts, inputs, n_done), n_done + 1
        ):
            yield Answer(number, translations, checker.warnings(translations[0]))
        n_done += len(texts)


def _score(translator: Translator, inputs: InputTexts) -> Iterator[ScoreAnswer]:
    """The score of each pair, in order; each text of `inputs` is a sentence, a tab, and its
    translation.

    Raises:
        DataError: a text is not a pair. All pairs before it are scored first.
    """

    def score(pairs: Sequence[tuple[str, str]]) -> list[ScoredPair]:
        return score_pairs(translator, pairs)

    n_done = 0
    for texts in inputs.batches:
        fields = [text.split("\t") for text in texts]
        n_valid = next((i for i, parts in enumerate(fields) if len(parts) != 2), len(fields))
        pairs = [(sentence, translation) for sentence, translation in fields[:n_valid]]
        for number, pair in enumerate(_results(score, pairs, inputs, n_done), n_done + 1):
            yield Answer(
                number, pair, [SOURCE_CUT] * pair.src_cut + [UNKNOWN_GIVEN] * bool(pair.unknown)
            )
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
