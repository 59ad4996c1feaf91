"""From lines in to lines out: texts, n-best lists, alignments, JSON, or scores."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

from nmt.commands.options import OutputOptions
from nmt.config.parts import VIEWS, choices
from nmt.decoding.alignment import align, translation_to_dict
from nmt.decoding.batch_runner import TextError
from nmt.decoding.forced import ScoredPair, score_pairs
from nmt.decoding.translator import Translation, Translator
from nmt.decoding.warnings import WarningChecker, describe, warnings_of_pair
from nmt.errors import ConfigError, DataError, NmtError
from nmt.evaluation.scores import perplexity
from nmt.files import explain_read_errors, explain_write_errors, write_text
from nmt.lines import stream_lines
from nmt.report import heatmap
from nmt.report.style import PICTURE_FORMATS

PAGE_SUFFIX = ".html"  # of a page with the attention of all sentences
ResultT = TypeVar("ResultT")
Answer = tuple[int, ResultT, list[str]]  # number of the sentence, from 1; result; its warnings


@dataclass(frozen=True)
class InputTexts:
    """The sentences to translate.

    Attributes:
        batches: lists of sentences, in order.
        name: of the file or stream, for messages. unit: "line" or "sentence", for messages.
        is_keyboard: whether someone types the sentences and waits for each translation.
        numbers: of the lines of all sentences, where they are not 1, 2, 3 ...
    """

    batches: Iterable[Sequence[Any]]
    name: str
    unit: str
    is_keyboard: bool = False
    numbers: Sequence[int] | None = None


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
    if options.score:
        pairs = answers(inputs, partial(_score, translator), warnings_of_pair)
        return _score_lines(pairs, inputs.unit, as_json=options.as_json)
    checker = WarningChecker(translator.tokenizers, translator.vocabularies)

    def translate(texts: Sequence[str]) -> list[list[Translation]]:
        prefixes = None if options.prefix is None else [options.prefix] * len(texts)
        return translator.translate_n_best(texts, options.n_best, prefixes)

    results = answers(inputs, translate, lambda best: checker.warnings(best[0]))
    if attention is not None:
        results = _draw_attention(results, attention)
    return (_to_line(result, translator, options) for result in results)


def answers(
    inputs: InputTexts,
    fn: Callable[[Sequence[Any]], list[ResultT]],
    check: Callable[[ResultT], list[str]],
) -> Iterator[Answer[ResultT]]:
    """The result of `fn` for each sentence, and its warnings, which `check` finds. They are printed
    at the end, or at once for someone at a keyboard.

    Raises:
        DataError: `fn` refuses a sentence. The answers for all before it come first.
    """
    numbers: dict[str, list[int]] = {}  # of the sentences that a warning is about
    all_numbers = count(1) if inputs.numbers is None else iter(inputs.numbers)
    try:
        for texts in inputs.batches:
            results, error = _results(fn, texts)
            checked = {id(result): result for result in results}  # equal texts share a result
            warnings_of = {key: check(result) for key, result in checked.items()}
            for result, number in zip(results, all_numbers, strict=False):
                warnings = warnings_of[id(result)]
                yield number, result, warnings
                for warning in warnings:
                    numbers.setdefault(warning, []).append(number)
                if inputs.is_keyboard:
                    _print_warnings(numbers, inputs.unit)
                    numbers.clear()
            if error is not None:
                raise DataError(f"{inputs.name}, {inputs.unit} {next(all_numbers)}: {error.reason}")
    except (NmtError, KeyboardInterrupt):
        _print_warnings(numbers, inputs.unit)
        raise
    _print_warnings(numbers, inputs.unit)


def _results(
    fn: Callable[[Sequence[Any]], list[ResultT]], texts: Sequence[Any]
) -> tuple[list[ResultT], TextError | None]:
    """The results of `fn` for the texts before the first that it refuses, and that error."""
    try:
        return fn(texts), None
    except TextError as error:
        results, earlier = _results(fn, texts[: error.index])
        return results, earlier or error


def _score(translator: Translator, texts: Sequence[str]) -> list[ScoredPair]:
    """The scores of pairs: each text is a sentence, a tab, and its translation."""
    pairs = []
    for index, text in enumerate(texts):
        sentence, *translations = text.split("\t")
        if len(translations) != 1:
            advice = "write the sentence, one tab, and its translation"
            raise TextError(index, f"found {len(translations)} tabs; {advice}")
        pairs.append((sentence, translations[0]))
    return score_pairs(translator, pairs)


def _print_warnings(numbers: Mapping[str, Sequence[int]], unit: str) -> None:
    for warning, lines in numbers.items():
        print(f"nmt: {describe(warning, lines, unit)}", file=sys.stderr)


def _to_line(
    answer: Answer[list[Translation]], translator: Translator, options: OutputOptions
) -> str:
    """The best translation or its word alignment; or the n best as Moses prints them: number,
    translation, score; or all about them as JSON.
    """
    number, translations, warnings = answer
    best, tokenizers = translations[0], translator.tokenizers
    if options.align:
        _check_attention(best, "--align")
        return " ".join(  # as Pharaoh writes them
            f"{source}-{output}" for source, output in align(best, tokenizers, options.threshold)
        )
    if options.as_json:
        hypotheses = [
            translation_to_dict(translation, tokenizers, options.threshold)
            for translation in translations
        ]
        values = {
            "source": best.source,
            "src_tokens": best.src_tokens,
            **hypotheses[0],
            "src_cut": best.src_cut,
            "warnings": warnings,
            **best.facts,
            **({"n_best": hypotheses} if options.n_best > 1 else {}),
        }
        return json.dumps(values, ensure_ascii=False)
    if options.n_best == 1:
        return best.text
    return "\n".join(
        f"{number - 1} ||| {translation.text} ||| {translation.score:.4f}"
        for translation in translations
    )


def _score_lines(
    answers: Iterable[Answer[ScoredPair]], unit: str, *, as_json: bool
) -> Iterator[str]:
    """Log-probability, tokens and perplexity of each pair. The totals are the last line of JSON;
    without JSON they go to stderr.
    """
    n_pairs, n_tokens, log_prob = 0, 0, 0.0
    for _, pair, warnings in answers:
        values = {**pair.to_dict(), "warnings": warnings}
        n_pairs += 1
        n_tokens += values["n_tokens"]
        log_prob += values["log_prob"]
        if as_json:
            yield json.dumps(values, ensure_ascii=False)
        else:
            yield f"{pair.log_prob:.4f}\t{values['n_tokens']}\t{pair.perplexity:.4f}"
    if not n_pairs:
        return
    total = perplexity(-log_prob / n_tokens)
    if as_json:
        yield json.dumps(
            {"pairs": n_pairs, "log_prob": log_prob, "n_tokens": n_tokens, "perplexity": total}
        )
    else:
        pairs = f"{n_pairs:,} {unit}{'s' if n_pairs > 1 else ''}"
        print(
            f"{pairs}: log-probability {log_prob:.4f}, {n_tokens:,} tokens, perplexity {total:.4f}",
            file=sys.stderr,
        )


def _draw_attention(
    answers: Iterable[Answer[list[Translation]]], path: Path
) -> Iterator[Answer[list[Translation]]]:
    """Pass answers on, and draw the attention of the best translations: all on a page, or that of a
    single sentence as a picture.

    Raises:
        ConfigError: the model has no attention; or there is not exactly one sentence for a picture.
        DataError: the file cannot be written.
    """
    is_page = path.suffix.lower() == PAGE_SUFFIX
    drawn: list[tuple[int, Translation]] = []
    if not is_page:
        answers = [*islice(answers, 2)]
        if len(answers) != 1 or not answers[0][1][0].src_tokens:
            raise ConfigError(
                f"--attention {path}: a picture shows one sentence; give exactly one, or name a "
                f"page ({PAGE_SUFFIX})"
            )
    for number, translations, warnings in answers:
        yield number, translations, warnings
        best = translations[0]
        _check_attention(best, "--attention")
        if best.src_tokens:
            drawn.append((number, best))
    if is_page:
        with explain_write_errors(path):
            write_text(path, VIEWS["page"].load()(drawn))
    else:
        [(_, best)] = drawn
        heatmap.draw(*best.attention_labels, best.attention, path)


def _check_attention(translation: Translation, option: str) -> None:
    if translation.src_tokens and not translation.has_attention:
        raise ConfigError(f"{option}: this model has no attention (model.attention.score: none)")


def check_output_files(output: Path | None, attention: Path | None) -> None:
    """Check, before any work, that these files can be written.

    Raises:
        DataError: a folder is missing, or `output` is a folder.
        NmtError: `attention` has another suffix than those of pictures and pages.
    """
    if output is not None and output.is_dir():
        raise DataError(f"{output}: is a folder; name a file")
    if output is not None and not output.parent.is_dir():
        raise DataError(f"{output.parent}: no such folder")
    formats = [*PICTURE_FORMATS, *([PAGE_SUFFIX] if "page" in VIEWS else [])]
    if attention is not None and attention.suffix.lower() not in formats:
        raise NmtError(f"{attention}: cannot draw attention in this format; use {choices(formats)}")
    if attention is not None and not attention.parent.is_dir():
        raise DataError(f"{attention}: the folder {attention.parent} does not exist")
