"""Analyses of a run's translations beyond their scores: by group, attention, exposure bias,
alignment error.
"""

from collections.abc import Sequence

import numpy as np

from nmt.data.evaluation_set import EvaluationSet
from nmt.decoding.alignment import align
from nmt.decoding.forced import ScoredPair, score_pairs
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.evaluation.results import Details
from nmt.extras.analysis import attention as attention_stats
from nmt.extras.analysis import groups as breakdown
from nmt.extras.analysis.alignment_error import (
    AlignmentErrorRate,
    Links,
    ReferenceAlignment,
    alignment_error_rate,
    check_links,
)
from nmt.extras.analysis.leaks import TrainingOverlap
from nmt.extras.analysis.skipped_words import skipped_words
from nmt.extras.analysis.warnings import output_warnings
from nmt.report.table import Table

N_EXTREMES = 10  # sentences with the highest, and with the lowest chrF


def analyze(
    text: EvaluationSet,
    translations: Sequence[Translation],
    teacher_forced: Sequence[ScoredPair],
    translator: Translator,
    overlap: TrainingOverlap | None,
    alignments: Sequence[ReferenceAlignment] | None = None,
    *,
    lowercase: bool = False,
) -> Details:
    """The details of an evaluation.

    Args:
        translations: of the sources, by `translator`.
        teacher_forced: the references, scored with the reference as the decoder's input.
        overlap: of the text with the training data, if that is known.
        alignments: reference alignments of the sentences, for the alignment error rate.
        lowercase: whether the system writes only lower-case letters.

    Raises:
        DataError: an alignment does not fit its sentence, there are no links, or the model has no
            attention.
    """
    free_running = score_pairs(
        translator, [(pair.source, pair.text) for pair in teacher_forced], free_running=True
    )
    outputs = [translation.text for translation in translations]
    translated = breakdown.TranslatedText(
        text.sources or [],
        outputs,
        text.references,
        complete=[translation.complete for translation in translations],
        skipped=[
            bool(skipped_words(translation, translator.src_tokenizer))
            for translation in translations
        ],
        lowercase=lowercase,
    )
    tables = [breakdown.by_length(translated)]
    if overlap is not None:
        tables += [
            breakdown.by_rarest_word(translated, overlap.src_counts),
            breakdown.by_frequency(translated, overlap.tgt_counts),
            breakdown.by_overlap(translated, overlap),
        ]
    tables += _attention_tables(translations)
    losses = (
        [-np.array(pair.token_log_probs) for pair in pairs]
        for pairs in (teacher_forced, free_running)
    )
    tables.append(attention_stats.exposure_bias(*losses))
    best, worst = breakdown.extremes(translated, N_EXTREMES)
    warnings = output_warnings(translated, None if overlap is None else overlap.tgt_counts)
    error = (
        None
        if alignments is None
        else _alignment_error(text, teacher_forced, alignments, translator)
    )
    return Details(tables, warnings, best, worst, error)


def _alignment_error(
    text: EvaluationSet,
    teacher_forced: Sequence[ScoredPair],
    alignments: Sequence[ReferenceAlignment],
    translator: Translator,
) -> AlignmentErrorRate:
    """The alignment error rate of the attention, while the decoder reads the references."""
    check_links(alignments, text.sources or [], text.references[0])
    forced = (
        Translation(pair.source, pair.text, pair.src_tokens, pair.tokens, attention=pair.attention)
        for pair in teacher_forced
    )
    links: list[Links] = [
        frozenset(align(translation, translator.tokenizers)) for translation in forced
    ]
    return alignment_error_rate(links, alignments)


def _attention_tables(translations: Sequence[Translation]) -> list[Table]:
    """Empty for a model without attention."""
    attended = [translation for translation in translations if translation.has_attention]
    if not attended:
        return []
    attentions = [translation.attention for translation in attended]
    return [
        attention_stats.by_position(attentions),
        attention_stats.by_coverage(attentions),
        attention_stats.most_ignored(
            attentions, [translation.src_tokens for translation in attended]
        ),
    ]
