"""`nmt translate`: sentences in, translations out, one line for each line; or given translations in, their likelihoods out."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from nmt.decoding.alignment import align, to_pharaoh
from nmt.decoding.batch_runner import TooLargeError
from nmt.decoding.forced import ScoredPair, score_pairs
from nmt.decoding.quality_warnings import SOURCE_CUT, UNKNOWN_GIVEN, WarningChecker, describe
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, DataError, NmtError
from nmt.files import replacing, stream_lines, write_text
from nmt.metrics.scores import perplexity
from nmt.report import heatmap
from nmt.report.html import attention_figure, page
from nmt.report.style import FORMATS

PAGE = ".html"


@dataclass(frozen=True)
class Source:
    """What is to be translated.

    Attributes:
        batches: of sentences, in order.
        name: of where they come from. unit: what each is, "line" or "sentence".
        waits: whether someone at a keyboard waits for each answer.
    """

    batches: Iterable[Sequence[str]]
    name: str
    unit: str
    waits: bool = False


@dataclass(frozen=True)
class Answer:
    """What is made of one sentence.

    Attributes:
        number: of the sentence, from 1.
        translations: at least one, best first.
        warnings: keys of `quality_warnings.DESCRIPTIONS`.
    """

    number: int
    translations: list[Translation]
    warnings: list[str]

    @property
    def best(self) -> Translation:
        return self.translations[0]


@dataclass(frozen=True)
class Scored:
    """How likely one given translation is: that of the pair with this number, from 1."""

    number: int
    pair: ScoredPair
    warnings: list[str]


class _Numbered(Protocol):
    @property
    def number(self) -> int: ...

    @property
    def warnings(self) -> list[str]: ...


NumberedT = TypeVar("NumberedT", bound=_Numbered)
Given = TypeVar("Given")
Made = TypeVar("Made")
Form = Callable[[Answer], str]  # what is written of it, without the end of the line


def run(translator: Translator, source: Source, *, n_best: int = 1, prefix: str | None = None) -> Iterator[Answer]:
    """Translate, in order, what is there at a time.

    Args:
        n_best: translations of each sentence. prefix: what each of them begins with.

    Raises:
        ConfigError: the beam is too narrow for `n_best`.
        DataError: the prefix cannot be written by this model; or, later, the source cannot be read further, or a sentence does
            not fit into memory.
    """
    translator.translate_n_best([""], n_best, None if prefix is None else [prefix])  # what cannot be is refused at once
    return _answers(translator, source, n_best, prefix)


def _answers(translator: Translator, source: Source, n_best: int, prefix: str | None) -> Iterator[Answer]:
    checker = WarningChecker(*_languages(translator))
    number = 0

    def make(texts: Sequence[str]) -> list[list[Translation]]:
        return translator.translate_n_best(texts, n_best, None if prefix is None else [prefix] * len(texts))

    for texts in source.batches:
        for number, translations in enumerate(_made(make, texts, source, number), number + 1):  # noqa: B020
            yield Answer(number, translations, checker.warnings(translations[0]))


def run_score(translator: Translator, source: Source) -> Iterator[Scored]:
    """Score given translations: each sentence of `source` is one, and before it, parted by a tab, what it translates.

    Raises:
        DataError: a line is no pair, cannot be read, or does not fit into memory; it is named, when those before it have been
            scored.
    """
    number = 0
    for texts in source.batches:
        pairs = [tuple(text.split("\t")) for text in texts]
        n_good = next((i for i, pair in enumerate(pairs) if len(pair) != 2), len(pairs))
        good = [(first, second) for first, second, *_ in pairs[:n_good]]
        for number, pair in enumerate(_made(partial(score_pairs, translator), good, source, number), number + 1):  # noqa: B020
            warnings = [SOURCE_CUT] * pair.src_cut + [UNKNOWN_GIVEN] * bool(pair.unknown)
            yield Scored(number, pair, warnings)
        if n_good < len(pairs):
            found = len(pairs[n_good]) - 1
            raise DataError(
                f"{source.name}, {source.unit} {number + 1}: {found} tabs; a pair is a source, one tab, its translation"
            )


def _made(make: Callable[[Sequence[Given]], list[Made]], texts: Sequence[Given], source: Source, first: int) -> Iterator[Made]:
    """What is made of each of `texts`, the first of which has `first` others before it.

    Raises:
        DataError: one does not fit into memory; it is named, when those before it have been handed on.
    """
    try:
        made = make(texts)
    except TooLargeError as error:
        yield from _made(make, texts[: error.index], source, first)
        raise DataError(f"{source.name}, {source.unit} {first + error.index + 1}: {error.reason}") from None
    yield from made


def noting(answers: Iterable[NumberedT], source: Source) -> Iterator[NumberedT]:
    """Pass answers on, and print each kind of warning once, with its lines, to stderr: at the end, or at once at a keyboard."""
    found: dict[str, list[int]] = {}
    try:
        for answer in answers:
            yield answer
            for warning in answer.warnings:
                found.setdefault(warning, []).append(answer.number)
            if source.waits:
                _say(found, source.unit)
                found = {}
    except (NmtError, KeyboardInterrupt):  # of those before it there is all the more to say
        _say(found, source.unit)
        raise
    _say(found, source.unit)


def _say(found: dict[str, list[int]], unit: str) -> None:
    for warning, numbers in found.items():
        print(f"nmt: {describe(warning, numbers, unit)}", file=sys.stderr)


def in_text(n_best: int) -> Form:
    """The translation alone; or, of several, the lines that Moses writes: number from 0, translation, score."""
    if n_best == 1:
        return lambda answer: answer.best.text
    return lambda answer: "\n".join(f"{answer.number - 1} ||| {one.text} ||| {one.score:.4f}" for one in answer.translations)


def in_pharaoh(translator: Translator, threshold: float | None = None) -> Form:
    """The pairs of words of the best translation; `threshold` as in `align`."""
    tokenizers, _ = _languages(translator)

    def form(answer: Answer) -> str:
        if answer.best.src_tokens and not answer.best.has_attention:
            raise ConfigError("--align: this model looks at nothing (model.attention.score: none)")
        return to_pharaoh(align(answer.best, tokenizers, threshold))

    return form


def in_json(translator: Translator, n_best: int = 1, threshold: float | None = None) -> Form:
    """All that is known, on a line; `threshold` as in `align`."""
    tokenizers, _ = _languages(translator)

    def form(answer: Answer) -> str:
        described = [_to_dict(one, align(one, tokenizers, threshold)) for one in answer.translations]
        best = answer.best
        whole = {"source": best.source, "src_tokens": best.src_tokens, **described[0], "src_cut": best.src_cut}
        several = {"n_best": described} if n_best > 1 else {}
        return json.dumps({**whole, "warnings": answer.warnings, **several}, ensure_ascii=False)

    return form


def _to_dict(translation: Translation, pairs: list[tuple[int, int]]) -> dict[str, Any]:
    return {
        "text": translation.text,
        "tokens": translation.tokens,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "token_log_probs": translation.token_log_probs,
        "alignment": pairs,
        "replaced": [asdict(one) for one in translation.replaced],
        "complete": translation.complete,
    }


def score_lines(scored: Iterable[Scored], source: Source, *, as_json: bool) -> Iterator[str]:
    """For each pair log-probability, tokens and perplexity; in the end those of all: as the last line of JSON, else on stderr."""
    n_pairs, n_tokens, log_prob = 0, 0, 0.0
    for one in scored:
        pair = one.pair
        n_pairs, n_tokens, log_prob = n_pairs + 1, n_tokens + len(pair.token_log_probs), log_prob + pair.log_prob
        figures = {"log_prob": pair.log_prob, "n_tokens": len(pair.token_log_probs), "perplexity": pair.perplexity}
        if as_json:
            yield json.dumps({**_pair_to_dict(pair), **figures, "warnings": one.warnings}, ensure_ascii=False)
        else:
            yield f"{pair.log_prob:.4f}\t{len(pair.token_log_probs)}\t{pair.perplexity:.4f}"
    if not n_pairs:
        return
    whole = perplexity(-log_prob / n_tokens)
    if as_json:
        yield json.dumps({"pairs": n_pairs, "log_prob": log_prob, "n_tokens": n_tokens, "perplexity": whole})
    else:
        pairs = f"{n_pairs:,} {source.unit}{'s' if n_pairs > 1 else ''}"
        print(f"{pairs}: log-probability {log_prob:.4f}, {n_tokens:,} tokens, perplexity {whole:.4f}", file=sys.stderr)


def _pair_to_dict(pair: ScoredPair) -> dict[str, Any]:
    return {
        "source": pair.source,
        "text": pair.text,
        "tokens": pair.tokens,
        "unknown": pair.unknown,
        "token_log_probs": pair.token_log_probs,
        "src_cut": pair.src_cut,
    }


def draw_attention(answers: Iterable[Answer], path: Path) -> Iterator[Answer]:
    """Pass answers on, and draw the attention of the best translations: a page of all of them, or a picture of the only one.

    Raises:
        ConfigError: there is more than one sentence for a picture, or none.
    """
    if path.suffix.lower() == PAGE:
        return _draw_page(answers, path)
    return _draw_picture(answers, path)


def _draw_picture(answers: Iterable[Answer], path: Path) -> Iterator[Answer]:
    first = [*islice(answers, 2)]
    if len(first) != 1 or not first[0].best.src_tokens:
        raise ConfigError(f"--attention {path}: draws one sentence; give exactly one, or name a page ({PAGE})")
    yield first[0]
    source, output = first[0].best.attended
    heatmap.draw(source, output, _looked(first[0].best), path)


def _draw_page(answers: Iterable[Answer], path: Path) -> Iterator[Answer]:
    sections = []
    for answer in answers:
        yield answer
        if answer.best.src_tokens:
            figure = attention_figure(*answer.best.attended, _looked(answer.best), answer.best.text)
            sections.append((f"{answer.number}  {answer.best.source}", figure))
    with _said_of(path):
        write_text(path, page("Where each word looked", sections))


def _looked(translation: Translation) -> Any:
    if not translation.has_attention:
        raise ConfigError("--attention: this model looks at nothing (model.attention.score: none)")
    return translation.attention


def check_targets(output: Path | None, attention: Path | None) -> None:
    """Whether these files may be written: worth asking before the work. Raises: NmtError."""
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise DataError(f"{output}: is a folder; name a file" if output.is_dir() else f"{output.parent}: no such folder")
    if attention is None:
        return
    if attention.suffix.lower() not in (PAGE, *FORMATS):
        raise NmtError(f"{attention}: attention is drawn as {', '.join([PAGE, *FORMATS])}; end the name with one of these")
    if not attention.parent.is_dir():
        raise DataError(f"{attention}: there is no folder {attention.parent} to put it in")


def write(lines: Iterable[str], path: Path | None = None) -> None:
    """Each as soon as it is known, to stdout or into a file; what the file held before stays until all is written.

    Until then they are in the file's sibling `.partial`, where they also stay when something goes wrong.

    Raises:
        DataError: the file cannot be written, or not all of the lines can be made.
    """
    if path is None:
        _write(lines, sys.stdout)
        return
    if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
        with _said_of(path), path.open("w", encoding="utf-8", newline="\n") as file:
            _write(lines, file)
        return
    kept = path.resolve().with_name(f"{path.resolve().name}.partial")
    with _telling_of(kept), _said_of(kept), replacing(path, kept), kept.open("w", encoding="utf-8", newline="\n") as file:
        _write(lines, file)


@contextmanager
def _telling_of(kept: Path) -> Iterator[None]:
    """After a fault, say that what was done until then is in `kept`, if it is anything."""
    try:
        yield
    except (NmtError, KeyboardInterrupt) as error:
        if not kept.is_file() or not kept.stat().st_size:
            raise
        done = f"what was done before is in {kept}"
        if isinstance(error, NmtError):
            raise DataError(f"{error}; {done}") from None
        print(f"nmt: {done}", file=sys.stderr)
        raise


def _write(lines: Iterable[str], stream: TextIO) -> None:
    for line in lines:
        stream.write(f"{line}\n")
        stream.flush()


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from None


def open_source(sentences: Sequence[str], file: Path | None) -> Source:
    """What to translate: the sentences given, the lines of `file`, or of stdin (`-`, or when nothing is given).

    Raises:
        ConfigError: both are given.
        DataError: there is no such file, stdin is closed, or a sentence is not UTF-8.
    """
    if sentences and file is not None:
        raise ConfigError("give sentences or --file, not both")
    if sentences:
        for number, sentence in enumerate(sentences, 1):
            if not sentence.isprintable() and any("\ud800" <= character <= "\udfff" for character in sentence):
                raise DataError(f"sentence {number}: not UTF-8")
        return Source([sentences], "sentences", "sentence")
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise DataError("stdin is closed; give sentences or --file")
        stream: Any = sys.stdin.buffer
        return Source(_closing(stream, "stdin"), "stdin", "line", waits=stream.isatty())
    try:
        return Source(_closing(file.open("rb"), str(file)), str(file), "line")
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None


def greet(source: Source) -> None:
    """Tell someone at a keyboard what is waited for."""
    if source.waits:
        end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
        print(f"nmt: write a sentence, Enter translates it; {end}", file=sys.stderr)


def _closing(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    try:
        with stream:
            yield from stream_lines(stream, name)
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror})") from None


def _languages(translator: Translator) -> Any:
    """Tokenizers and vocabularies, each (source, target)."""
    return (
        (translator.src_tokenizer, translator.tgt_tokenizer),
        (translator.src_vocabulary, translator.tgt_vocabulary),
    )
