"""`nmt translate`: translates sentences, one output line per input line; or scores given
translations.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from nmt.commands.translate_io import (
    InputTexts,
    check_output_files,
    open_input,
    print_keyboard_hint,
    write_output,
)
from nmt.commands.translate_options import TranslateOptions
from nmt.decoding.batch_runner import TooLargeError
from nmt.decoding.forced import ScoredPair, score_pairs
from nmt.decoding.output import (
    Answer,
    ScoreAnswer,
    TranslationAnswer,
    draw_attention,
    report_warnings,
    score_lines,
    to_alignment,
    to_json,
    to_text,
)
from nmt.decoding.quality_warnings import SOURCE_CUT, UNKNOWN_GIVEN, WarningChecker
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.run.load import load_translator

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


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
    print_keyboard_hint(inputs)
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

    if options.score:
        return score_lines(
            report_warnings(_score(translator, inputs), inputs), inputs, as_json=options.as_json
        )
    answers = report_warnings(
        _translate(translator, inputs, options.n_best, options.prefix), inputs
    )
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
