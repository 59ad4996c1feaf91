"""What `nmt translate` prints or draws of translations: texts, n-best lists, alignments, JSON,
scores, attention.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from nmt.commands.options import Shown
from nmt.config.parts import VIEWS, choices
from nmt.decoding.alignment import align, translation_to_dict
from nmt.decoding.forced import ScoredPair, score_pairs
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, DataError, NmtError, TextError
from nmt.evaluation.scores import perplexity
from nmt.files import explain_write_errors, write_text
from nmt.report import heatmap
from nmt.report.style import PICTURE_FORMATS
from nmt.text.tokenizers import Tokenizer

PAGE_SUFFIX = ".html"  # of a page with the attention of all sentences
ResultT = TypeVar("ResultT")
Answer = tuple[int, ResultT, list[str]]  # number of the sentence, from 1; result; its warnings


def score_texts(translator: Translator, texts: Sequence[str]) -> list[ScoredPair]:
    """The scores of pairs: each text is a sentence, a tab, and its translation."""
    pairs = []
    for index, text in enumerate(texts):
        sentence, *translations = text.split("\t")
        if len(translations) != 1:
            advice = "write the sentence, one tab, and its translation"
            raise TextError(index, f"found {len(translations)} tabs; {advice}")
        pairs.append((sentence, translations[0]))
    return score_pairs(translator, pairs)


def to_line(
    answer: Answer[list[Translation]], tokenizers: tuple[Tokenizer, Tokenizer], shown: Shown
) -> str:
    """The best translation or its word alignment; or the n best as Moses prints them: number,
    translation, score; or all about them as JSON.
    """
    number, translations, warnings = answer
    best = translations[0]
    if shown.align:
        _check_attention(best, "--align")
        return " ".join(  # as Pharaoh writes them
            f"{source}-{output}" for source, output in align(best, tokenizers, shown.threshold)
        )
    if shown.as_json:
        hypotheses = [
            translation_to_dict(translation, tokenizers, shown.threshold)
            for translation in translations
        ]
        values = {
            "source": best.source,
            "src_tokens": best.src_tokens,
            **hypotheses[0],
            "src_cut": best.src_cut,
            "warnings": warnings,
            **best.facts,
            **({"n_best": hypotheses} if shown.n_best > 1 else {}),
        }
        return json.dumps(values, ensure_ascii=False)
    if shown.n_best == 1:
        return best.text
    return "\n".join(
        f"{number - 1} ||| {translation.text} ||| {translation.score:.4f}"
        for translation in translations
    )


def score_lines(
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


def draw_attention(
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
