"""`nmt translate`: translates sentences, lines or a document; or scores given translations."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from nmt.commands.answers import (
    LINES,
    Answer,
    InputTexts,
    Shown,
    check_output_files,
    document_format,
    draw_attention,
    open_input,
    read_document,
    score_lines,
    score_texts,
    to_line,
)
from nmt.commands.options import (
    BeamOption,
    DecodingOption,
    DeviceOption,
    GlossaryOption,
    JsonOption,
    KeepOption,
    MemoryOption,
    NoProtectOption,
    NoSplitOption,
    RunsOption,
)
from nmt.config.load import decoding_overrides
from nmt.config.parts import DOCUMENT_FORMATS
from nmt.errors import ConfigError, DataError, NmtError, TextError
from nmt.lines import open_output

if TYPE_CHECKING:
    from nmt.texts.translator import Settings, TextTranslator

BATCH_TEXTS = 1024  # of a document that are translated at once
ResultT = TypeVar("ResultT")


def command(
    sentences: Annotated[
        list[str] | None, typer.Argument(help="Sentences, each in quotes.", metavar="SENTENCE")
    ] = None,
    run: RunsOption = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", help="A document, or lines of one sentence; - is stdin.", metavar="FILE"
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"Format of the file: {', '.join(DOCUMENT_FORMATS)}; or {LINES}: one sentence per "
            "line. Default: as its suffix says.",
            metavar="NAME",
        ),
    ] = None,
    fill: Annotated[
        Literal["empty", "all"],
        typer.Option(
            "--fill",
            help="In files with both languages (po, xliff): which translations to write.",
        ),
    ] = "empty",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write to this file instead of stdout.", metavar="FILE"
        ),
    ] = None,
    memory: MemoryOption = None,
    glossary: GlossaryOption = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
    n_best: Annotated[
        int,
        typer.Option(
            "--n-best",
            min=1,
            max=10_000,
            help="Print the N best translations: number ||| text ||| score.",
            metavar="N",
        ),
    ] = 1,
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", help="Begin each translation with this text.", metavar="TEXT"),
    ] = None,
    align: Annotated[
        bool,
        typer.Option(
            "--align",
            help="Print the word alignment instead of the text: source-target pairs such as "
            "0-0 1-2.",
        ),
    ] = False,
    score: Annotated[
        bool,
        typer.Option(
            "--score",
            help="Score given translations (each line: source, tab, translation): "
            "log-probability, tokens, perplexity.",
        ),
    ] = False,
    attention: Annotated[
        Path | None,
        typer.Option(
            "--attention",
            help="Draw the attention of one sentence (.png, .svg, .pdf) or of all (.html).",
            metavar="FILE",
        ),
    ] = None,
    no_split: NoSplitOption = False,
    no_protect: NoProtectOption = False,
    keep: KeepOption = None,
    least_confidence: Annotated[
        float | None,
        typer.Option(
            "--least-confidence",
            min=0,
            max=1,
            help="Mark translations for a person to read that are less probably good than this; "
            "`nmt runs calibrate` measures it.",
            metavar="P",
        ),
    ] = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    shown = Shown(n_best, prefix, align, score, attention, as_json)
    format_name = document_format(file, format_, shown)
    shown.check(
        format_name,
        fill,
        output,
        {
            "give sentences or --file, not both": (
                sentences and (file is not None or format_ is not None)
            ),
            "--score does not search; remove --memory": score and memory is not None,
        },
    )

    from nmt.run.folder import load_run_config
    from nmt.run.load import opened
    from nmt.texts.glossary import Glossary
    from nmt.texts.load import load_text_translator

    settings = text_settings(
        no_split=no_split, no_protect=no_protect, keep=keep, least_confidence=least_confidence
    )
    if sys.stdout is None and output is None:
        raise NmtError("stdout is closed; write into a file with -o")
    # All input and output is checked before the first sentence is translated.
    overrides = [*memory_overrides(memory), *decoding_overrides(set_, beam)]
    terms = None if glossary is None else Glossary.read(glossary)
    with ExitStack() as stack:
        members = [stack.enter_context(opened(path)) for path in run or (None,)]
        languages, is_named = None, score or format_ is not None
        if format_name is not None:
            data = load_run_config(members[0][0]).data
            languages = data.src_language, data.tgt_language
        document = read_document(file, format_name, languages, is_named=is_named, fill=fill)
        inputs = open_input(sentences or [], file) if document is None else None
        check_output_files(output, attention)
        translator = load_text_translator(
            members, settings, terms, device=device, overrides=overrides, n_best=n_best
        )
    if least_confidence is not None and translator.confidence is None:
        raise ConfigError(
            "--least-confidence: the run has no confidence for its checkpoint and "
            "decoding.method; run `nmt runs calibrate RUN` first"
        )
    if prefix is not None:
        translator.sentence_translator.prefix_ids([prefix])
    if inputs is None:
        write_output(output, translated_document(translator, document))
    else:
        write_output(output, (f"{line}\n" for line in output_lines(translator, inputs, shown)))


def text_settings(
    *,
    no_split: bool,
    no_protect: bool,
    keep: Sequence[str] | None,
    least_confidence: float | None = None,
) -> "Settings":
    """How the options say to treat texts.

    Raises:
        typer.BadParameter: they do not go together, or one is no regular expression.
    """
    from nmt.texts.translator import Settings

    if keep and no_protect:
        raise typer.BadParameter("--keep protects; remove --no-protect")
    patterns = []
    for pattern in keep or ():
        try:
            patterns.append(re.compile(pattern))
        except re.error as error:
            raise typer.BadParameter(
                f"--keep {pattern!r}: no regular expression ({error})"
            ) from None
    return Settings(not no_split, None if no_protect else tuple(patterns), least_confidence)


def memory_overrides(memory: Sequence[Path] | None) -> list[str]:
    """`decoding.key=value` each: the model looks at the pairs of the memory, with a weight that
    suits most of them.
    """
    if not memory:
        return []
    return [
        f"decoding.neighbors.memory={json.dumps([*map(str, memory)], ensure_ascii=False)}",
        "decoding.neighbors.pairs=16",
        "decoding.neighbors.weight=0.8",
    ]


def write_output(file: Path | None, pieces: Iterable[str | bytes]) -> None:
    """Write each piece into the file, or to stdout, as soon as it is there. Bytes are those of a
    document, in its encoding.
    """
    with open_output(file) as stream:
        for piece in pieces:
            if isinstance(piece, bytes):
                stream.buffer.write(piece)
            else:
                stream.write(piece)
            stream.flush()


def translated_document(translator: "TextTranslator", document: Any) -> Iterator[bytes]:
    """The file with translated texts, in pieces, as soon as possible. At the end, warnings and
    remarks go to stderr.

    Raises:
        DataError: a text does not fit into memory, or the encoding of the file lacks a character.
    """
    texts = [segment.text for segment in document.segments]
    batches = (texts[i : i + BATCH_TEXTS] for i in range(0, len(texts), BATCH_TEXTS))
    results = answers(
        InputTexts(batches, document.name, document.unit, numbers=document.lines),
        translator.translate_marked,
        lambda best: translator.warnings(best[0].translation),
    )
    yield from document.written(best[0].marked for _, best, _ in results)
    encoding = document.content.encoding
    if not encoding.startswith("utf-8"):
        print(
            f"nmt: the translation is in {encoding.upper()}, as {document.name} is", file=sys.stderr
        )
    _print_warnings(document.remarks, document.unit)


def output_lines(translator: "TextTranslator", inputs: InputTexts, shown: Shown) -> Iterator[str]:
    """The output for each sentence in turn, as soon as possible; with several translations of each,
    one that contains line feeds.

    Raises:
        ConfigError: the model has no attention, which an option needs.
        DataError: the input cannot be read any further, or a sentence does not fit into memory.
    """
    from nmt.texts.warnings import warnings_of_pair

    if inputs.is_keyboard:
        end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
        print(f"nmt: type a sentence, Enter translates it; {end}", file=sys.stderr)
    if shown.score:
        pairs = answers(
            inputs, partial(score_texts, translator.sentence_translator), warnings_of_pair
        )
        return score_lines(pairs, inputs.unit, as_json=shown.as_json)

    def translate(texts: Sequence[str]) -> list[Any]:
        prefixes = None if shown.prefix is None else [shown.prefix] * len(texts)
        return translator.translate_n_best(texts, shown.n_best, prefixes)

    results = answers(inputs, translate, lambda best: translator.warnings(best[0]))
    if shown.attention is not None:
        results = draw_attention(results, shown.attention)
    tokenizers = translator.sentence_translator.tokenizers
    return (to_line(result, tokenizers, shown) for result in results)


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
    numbers: dict[str, list[int]] = {}  # of the texts that a warning is about
    all_numbers = count(1) if inputs.numbers is None else iter(inputs.numbers)
    try:
        for texts in inputs.batches:
            results, error = _results(fn, texts)
            found: dict[Any, list[str]] = {}  # equal texts have equal warnings
            for text, result, number in zip(texts, results, all_numbers, strict=False):
                if text not in found:
                    found[text] = check(result)
                warnings = found[text]
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


def _print_warnings(numbers: Mapping[str, Sequence[int]], unit: str) -> None:
    """Print each warning with the numbers of the texts that it is about."""
    from nmt.texts.warnings import describe

    for warning, lines in numbers.items():
        print(f"nmt: {describe(warning, lines, unit)}", file=sys.stderr)
