"""What `nmt translate` prints and draws: text, n-best lists, word alignments, JSON and scores.

Also the warnings about translations that are probably wrong: from their tokens and the
vocabularies, without another run of the model.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from math import log
from pathlib import Path
from typing import Any, Generic, Self, TextIO, TypeVar

from nmt.config.parts import VIEWS, choices
from nmt.decoding.alignment import align, to_pharaoh, translation_to_dict
from nmt.decoding.forced import ScoredPair
from nmt.decoding.translator import Translation
from nmt.errors import ConfigError, DataError, NmtError
from nmt.evaluation.scores import perplexity
from nmt.files import explain_write_errors, replacing, write_text
from nmt.report import heatmap
from nmt.report.style import PICTURE_FORMATS
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import UNK, Vocabulary

ResultT = TypeVar("ResultT")

SOURCE_CUT, OUTPUT_CUT, REPEATING = "source cut", "output cut", "output repeats"
TARGET_LANGUAGE, ALL_UNKNOWN, MOSTLY_UNKNOWN = (
    "source in target language",
    "source unknown",
    "source mostly unknown",
)
UNKNOWN_GIVEN = "unknown words given"

DESCRIPTIONS: Mapping[str, str] = {
    SOURCE_CUT: "the source is longer than decoding.max_source_tokens and was truncated",
    ALL_UNKNOWN: "no word of the source is in the vocabulary",
    MOSTLY_UNKNOWN: (
        "most words of the source are not in the vocabulary; is it in another language?"
    ),
    TARGET_LANGUAGE: "the source seems to be in the target language already",
    OUTPUT_CUT: (
        "the output reached the maximum length (decoding.max_length_ratio) and was truncated"
    ),
    REPEATING: "the output repeats itself",
    UNKNOWN_GIVEN: "a word of the translation is not in the vocabulary and was scored as <unk>",
}

MAX_CHARACTERS = 400  # of a source, to guess its language
MIN_WORDS = 3  # of a source, to guess its language
MIN_MARGIN = 1.0  # nats per word by which the source must be more probable in the target language
MAX_REPETITIONS = 3  # in a row
MAX_NUMBERS = 10  # of lines in a message
MAX_PERIOD = 20  # tokens in a repeated sequence
PAGE_SUFFIX = ".html"  # of a page with the attention of all sentences


@dataclass(frozen=True)
class Answer(Generic[ResultT]):
    """The result for one sentence.

    Attributes:
        number: of the sentence, from 1.
        result: its translations, best first; or the score of a given translation.
        warnings: keys of `DESCRIPTIONS`.
    """

    number: int
    result: ResultT
    warnings: list[str]


TranslationAnswer = Answer[list[Translation]]
ScoreAnswer = Answer[ScoredPair]


def to_text(answer: TranslationAnswer, n_best: int) -> str:
    """The best translation; or the n best as Moses prints them: number, translation, score."""
    if n_best == 1:
        return answer.result[0].text
    return "\n".join(
        f"{answer.number - 1} ||| {translation.text} ||| {translation.score:.4f}"
        for translation in answer.result
    )


def to_alignment(
    answer: TranslationAnswer, tokenizers: tuple[Tokenizer, Tokenizer], threshold: float | None
) -> str:
    """The word alignment of the best translation in Pharaoh format; `threshold` as in `align`.

    Raises:
        ConfigError: the model has no attention.
    """
    translation = answer.result[0]
    if translation.src_tokens:
        _check_attention(translation, "--align")
    return to_pharaoh(align(translation, tokenizers, threshold))


def to_json(
    answer: TranslationAnswer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    threshold: float | None,
    n_best: int,
) -> str:
    """All about the translations of a sentence, in one line; `threshold` as in `align`."""
    best, *_ = answer.result
    hypotheses = [
        translation_to_dict(translation, tokenizers, threshold) for translation in answer.result
    ]
    values = {
        "source": best.source,
        "src_tokens": best.src_tokens,
        **hypotheses[0],
        "src_cut": best.src_cut,
    }
    values["warnings"] = answer.warnings
    if n_best > 1:
        values["n_best"] = hypotheses
    return json.dumps(values, ensure_ascii=False)


def score_lines(answers: Iterable[ScoreAnswer], unit: str, *, as_json: bool) -> Iterator[str]:
    """Log-probability, tokens and perplexity of each pair. The totals are the last line of JSON;
    without JSON they go to stderr. `unit` is "line" or "sentence".
    """
    n_pairs, n_tokens, log_prob = 0, 0, 0.0
    for answer in answers:
        pair = answer.result
        n_pairs += 1
        n_tokens += len(pair.token_log_probs)
        log_prob += pair.log_prob
        if as_json:
            yield _pair_to_json(answer)
        else:
            yield f"{pair.log_prob:.4f}\t{len(pair.token_log_probs)}\t{pair.perplexity:.4f}"
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


def _pair_to_json(answer: ScoreAnswer) -> str:
    pair = answer.result
    values: dict[str, Any] = {
        "source": pair.source,
        "text": pair.text,
        "tokens": pair.tokens,
        "unknown": pair.unknown,
        "token_log_probs": pair.token_log_probs,
        "src_cut": pair.src_cut,
        "log_prob": pair.log_prob,
        "n_tokens": len(pair.token_log_probs),
        "perplexity": pair.perplexity,
        "warnings": answer.warnings,
    }
    return json.dumps(values, ensure_ascii=False)


class WarningReport:
    """Prints to stderr which sentences each warning is about, when the block ends or fails with an
    error: the answers before it have warnings too.

    Args:
        unit: "line" or "sentence". at_once: print after each answer, for someone at a keyboard.
    """

    def __init__(self, unit: str, *, at_once: bool) -> None:
        self.unit, self.at_once = unit, at_once
        self.numbers: dict[str, list[int]] = {}  # of the sentences, by warning

    def add(self, answer: Answer[Any]) -> None:
        """Note the warnings of an answer."""
        for warning in answer.warnings:
            self.numbers.setdefault(warning, []).append(answer.number)
        if self.at_once:
            self._print()

    def _print(self) -> None:
        for warning, numbers in self.numbers.items():
            print(f"nmt: {describe(warning, numbers, self.unit)}", file=sys.stderr)
        self.numbers = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, NmtError | KeyboardInterrupt):
            self._print()


def draw_attention(answers: Iterable[TranslationAnswer], path: Path) -> Iterator[TranslationAnswer]:
    """Pass answers on, and draw the attention of the best translations: all on a page, or that of a
    single sentence as a picture.

    Raises:
        ConfigError: the model has no attention; or there is not exactly one sentence for a picture.
        DataError: the file cannot be written.
    """
    is_page = path.suffix.lower() == PAGE_SUFFIX
    return _draw_page(answers, path) if is_page else _draw_picture(answers, path)


def _draw_page(answers: Iterable[TranslationAnswer], path: Path) -> Iterator[TranslationAnswer]:
    translations: list[tuple[int, Translation]] = []
    for answer in answers:
        yield answer
        translation = answer.result[0]
        if translation.src_tokens:
            _check_attention(translation, "--attention")
            translations.append((answer.number, translation))
    with explain_write_errors(path):
        write_text(path, VIEWS["page"].load()(translations))


def _draw_picture(answers: Iterable[TranslationAnswer], path: Path) -> Iterator[TranslationAnswer]:
    first: Sequence[TranslationAnswer] = [*islice(answers, 2)]
    if len(first) != 1 or not first[0].result[0].src_tokens:
        raise ConfigError(
            f"--attention {path}: a picture shows one sentence; give exactly one, or name a "
            f"page ({PAGE_SUFFIX})"
        )
    yield first[0]
    translation = first[0].result[0]
    _check_attention(translation, "--attention")
    heatmap.draw(*translation.attention_labels, translation.attention, path)


def _check_attention(translation: Translation, option: str) -> None:
    if not translation.has_attention:
        raise ConfigError(f"{option}: this model has no attention (model.attention.score: none)")


class WarningChecker:
    """Checks translations; knows the two languages by the frequencies of their words."""

    def __init__(
        self, tokenizers: tuple[Tokenizer, Tokenizer], vocabularies: tuple[Vocabulary, Vocabulary]
    ) -> None:
        """Both are (source, target)."""
        self._tokenizers, self._vocabularies = tokenizers, vocabularies
        self._unigrams = [_Unigrams(vocabulary) for vocabulary in vocabularies]

    def warnings(self, translation: Translation) -> list[str]:
        """Keys of `DESCRIPTIONS`."""
        warnings = [self._check_source(translation)] if translation.src_tokens else []
        if translation.src_cut:
            warnings.append(SOURCE_CUT)
        if not translation.complete:
            warnings.append(OUTPUT_CUT)
        if repeats(translation.tokens, MAX_REPETITIONS) and not repeats(
            translation.src_tokens, MAX_REPETITIONS
        ):
            warnings.append(REPEATING)
        return [warning for warning in warnings if warning]

    def _check_source(self, translation: Translation) -> str:
        """A warning, or ""."""
        words = [token for token in translation.src_tokens if any(map(str.isalpha, token))]
        n_known = sum(word in self._vocabularies[0] for word in words)
        if self._is_target_language(translation.source[:MAX_CHARACTERS]):
            return TARGET_LANGUAGE
        if words and not n_known:
            return ALL_UNKNOWN
        return MOSTLY_UNKNOWN if len(words) >= MIN_WORDS and n_known < len(words) / 2 else ""

    def _is_target_language(self, text: str) -> bool:
        """Never True with a shared vocabulary, whose frequencies are those of both languages."""
        n_words = len(text.split())
        if n_words < MIN_WORDS:
            return False
        as_source, as_target = (
            unigrams.log_prob(tokenizer.split(text))
            for unigrams, tokenizer in zip(self._unigrams, self._tokenizers, strict=True)
        )
        return as_target - as_source > MIN_MARGIN * n_words


class _Unigrams:
    """A unigram language model, from the counts of tokens in the training data."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        total = sum(vocabulary.counts)
        self._vocabulary = vocabulary
        self._log_probs = [log(max(count, 0.5) / max(total, 1)) for count in vocabulary.counts]
        # <unk> may be frequent, but each unknown word is rare.
        self._log_probs[UNK] = min(self._log_probs)

    def log_prob(self, tokens: Sequence[str]) -> float:
        return sum(self._log_probs[index] for index in self._vocabulary.ids(tokens))


def describe(warning: str, numbers: Sequence[int], unit: str) -> str:
    """One line: the numbers of the sentences, and the warning. unit: "line" or "sentence"."""
    shown = ", ".join(map(str, numbers[:MAX_NUMBERS]))
    more = f" and {len(numbers) - MAX_NUMBERS:,} more" if len(numbers) > MAX_NUMBERS else ""
    return f"{unit}{'s' if len(numbers) > 1 else ''} {shown}{more}: {DESCRIPTIONS[warning]}"


def repeats(tokens: Sequence[str], times: int) -> bool:
    """Whether a sequence of tokens occurs `times` times in a row (a single token `times` + 1 times,
    since words may be doubled).
    """
    for period in range(1, min(MAX_PERIOD, len(tokens) // times) + 1):
        # Consecutive tokens that equal the token one period later.
        needed = period * (times - 1 if period > 1 else times)
        differing = [
            -1,
            *(i for i in range(len(tokens) - period) if tokens[i] != tokens[i + period]),
            len(tokens) - period,
        ]
        if any(after - before > needed for before, after in pairwise(differing)):
            return True
    return False


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


@contextmanager
def open_output(path: Path | None = None) -> Iterator[TextIO]:
    """The file to write lines into; without `path`, stdout.

    An existing file is replaced when the block ends. Until then the lines are in `PATH.partial`,
    where they stay after an error.

    Raises:
        DataError: the file cannot be written, or an error ended the lines.
    """
    if path is None:
        yield sys.stdout
        return
    if path.exists() and not path.is_file():  # a device or a pipe, which cannot be replaced
        with explain_write_errors(path), path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    partial = path.resolve().with_name(f"{path.resolve().name}.partial")
    with (
        _mention_partial_file(partial),
        explain_write_errors(partial),
        replacing(path, partial),
        partial.open("w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


@contextmanager
def _mention_partial_file(partial: Path) -> Iterator[None]:
    """Add to an error that the lines before it are in `partial`, if there are any."""
    try:
        yield
    except (NmtError, KeyboardInterrupt) as error:
        if not partial.is_file() or not partial.stat().st_size:
            raise
        remark = f"finished lines are in {partial}"
        if isinstance(error, NmtError):
            raise DataError(f"{error}; {remark}") from None
        print(f"nmt: {remark}", file=sys.stderr)
        raise
