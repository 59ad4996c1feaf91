"""What `nmt translate` prints and draws: text, n-best lists, word alignments, JSON, scores,
warnings and pictures of attention.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from nmt.commands.translate_io import PAGE_SUFFIX, InputTexts
from nmt.decoding.alignment import align, to_pharaoh, translation_to_dict
from nmt.decoding.forced import ScoredPair
from nmt.decoding.quality_warnings import describe
from nmt.decoding.translation import Translation
from nmt.errors import ConfigError, NmtError
from nmt.evaluation.scores import perplexity
from nmt.extras.analysis.html import attention_figure, page
from nmt.files import explain_write_errors, write_text
from nmt.report import heatmap
from nmt.text.tokenizers import Tokenizer

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Answer(Generic[ResultT]):
    """The result for one sentence.

    Attributes:
        number: of the sentence, from 1.
        result: its translations, best first; or the score of a given translation.
        warnings: keys of `quality_warnings.DESCRIPTIONS`.
    """

    number: int
    result: ResultT
    warnings: list[str]


TranslationAnswer = Answer[list[Translation]]
ScoreAnswer = Answer[ScoredPair]


def to_text(answer: TranslationAnswer, n_best: int) -> str:
    """The best translation; or, of several, the lines that Moses prints: number from 0,
    translation, score.
    """
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


def score_lines(
    answers: Iterable[ScoreAnswer], inputs: InputTexts, *, as_json: bool
) -> Iterator[str]:
    """Log-probability, tokens and perplexity of each pair. The totals are the last line of JSON;
    without JSON they go to stderr.
    """
    n_pairs, n_tokens, log_prob = 0, 0, 0.0
    for answer in answers:
        pair = answer.result
        n_pairs += 1
        n_tokens += len(pair.token_log_probs)
        log_prob += pair.log_prob
        yield (
            _pair_to_json(answer)
            if as_json
            else f"{pair.log_prob:.4f}\t{len(pair.token_log_probs)}\t{pair.perplexity:.4f}"
        )
    if not n_pairs:
        return
    total = perplexity(-log_prob / n_tokens)
    if as_json:
        yield json.dumps(
            {"pairs": n_pairs, "log_prob": log_prob, "n_tokens": n_tokens, "perplexity": total}
        )
    else:
        pairs = f"{n_pairs:,} {inputs.unit}{'s' if n_pairs > 1 else ''}"
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


def report_warnings(
    answers: Iterable[Answer[ResultT]], inputs: InputTexts
) -> Iterator[Answer[ResultT]]:
    """Pass answers on, and print to stderr which sentences each warning is about: at the end, or at
    once at a keyboard.
    """
    numbers: dict[str, list[int]] = {}
    try:
        for answer in answers:
            yield answer
            for warning in answer.warnings:
                numbers.setdefault(warning, []).append(answer.number)
            if inputs.is_keyboard:
                _print_warnings(numbers, inputs.unit)
                numbers = {}
    except (NmtError, KeyboardInterrupt):  # the answers before an error have warnings too
        _print_warnings(numbers, inputs.unit)
        raise
    _print_warnings(numbers, inputs.unit)


def _print_warnings(numbers: dict[str, list[int]], unit: str) -> None:
    for warning, warned_numbers in numbers.items():
        print(f"nmt: {describe(warning, warned_numbers, unit)}", file=sys.stderr)


def draw_attention(answers: Iterable[TranslationAnswer], path: Path) -> Iterator[TranslationAnswer]:
    """Pass answers on, and draw the attention of the best translations: all on a page, or that of a
    single sentence as a picture.

    Raises:
        ConfigError: the model has no attention; or there is not exactly one sentence for a picture.
        DataError: the file cannot be written.
    """
    return (
        _draw_page(answers, path)
        if path.suffix.lower() == PAGE_SUFFIX
        else _draw_picture(answers, path)
    )


def _draw_page(answers: Iterable[TranslationAnswer], path: Path) -> Iterator[TranslationAnswer]:
    sections: list[tuple[str, str]] = []
    for answer in answers:
        yield answer
        translation = answer.result[0]
        if translation.src_tokens:
            _check_attention(translation, "--attention")
            figure = attention_figure(
                *translation.attention_labels, translation.attention, translation.text
            )
            sections.append((f"{answer.number}  {translation.source}", figure))
    with explain_write_errors(path):
        write_text(path, page("Attention", sections))


def _draw_picture(answers: Iterable[TranslationAnswer], path: Path) -> Iterator[TranslationAnswer]:
    first: Sequence[TranslationAnswer] = [*islice(answers, 2)]
    if len(first) != 1 or not first[0].result[0].src_tokens:
        raise ConfigError(
            f"--attention {path}: a picture shows one sentence; give exactly one, or name a "
            "page "
            f"({PAGE_SUFFIX})"
        )
    yield first[0]
    translation = first[0].result[0]
    _check_attention(translation, "--attention")
    heatmap.draw(*translation.attention_labels, translation.attention, path)


def _check_attention(translation: Translation, option: str) -> None:
    if not translation.has_attention:
        raise ConfigError(f"{option}: this model has no attention (model.attention.score: none)")
