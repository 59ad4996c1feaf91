"""A closer look at what a run has translated: leaks, scores by group, attention, exposure bias."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from nmt.data.corpus import Corpus
from nmt.data.evaluation_set import EvaluationSet
from nmt.decoding.alignment import align
from nmt.decoding.forced import ScoredPair
from nmt.decoding.translation import Translation
from nmt.evaluation import attention_stats as diagnostics
from nmt.evaluation import breakdown
from nmt.evaluation.breakdown import Scored
from nmt.evaluation.leaks import Seen, scan, words
from nmt.evaluation.restoring import forms, restore
from nmt.evaluation.results import Details, Leaks
from nmt.evaluation.system import System
from nmt.metrics.alignment_error import Links, ReferenceAlignment, alignment_error, check_links
from nmt.metrics.scores import score
from nmt.metrics.table import Table
from nmt.text.vocabulary import SPECIALS, UNK

EXTREMES = 10  # sentences of best, and of worst chrF


def look_for(text: EvaluationSet, system: System, prepared: Sequence[Path]) -> Seen:
    """What of `text` is in the data that the system was trained on. Raises: DataError if that is damaged."""
    translator = system.translator
    src, tgt = (
        (translator.src_tokenizer, translator.src_vocabulary),
        (translator.tgt_tokenizer, translator.tgt_vocabulary),
    )
    corpora = [Corpus.load(folder, "train") for folder in prepared]
    training = chain.from_iterable(zip(restore(one.src, *src), restore(one.tgt, *tgt), strict=True) for one in corpora)
    seen = scan(training, forms(text.sources or [], *src), forms(text.references[0], *tgt))
    for counts in (seen.src_counts, seen.tgt_counts):
        for word in words(SPECIALS[UNK]):  # stands for many, each of them rare
            del counts[word]
    return seen


def leaks(seen: Seen, text: EvaluationSet, outputs: Sequence[str], metrics: Sequence[str]) -> Leaks:
    """How many sentences were seen in training, and the scores without them."""
    clean, found = seen.clean, any(seen.exact) or any(seen.near)
    references = [[stream[i] for i in clean] for stream in text.references]
    scores = score([outputs[i] for i in clean], references, metrics) if found and clean else []
    return Leaks(sum(seen.exact), sum(seen.near), scores)


def inspect(
    text: EvaluationSet,
    system: System,
    translations: Sequence[Translation],
    led: Sequence[ScoredPair],
    free: Sequence[ScoredPair],
    seen: Seen | None,
    gold: Sequence[ReferenceAlignment] | None = None,
) -> Details:
    """All that the scores do not say.

    Args:
        led: the references, the model being led through them. free: the same, fed its own output.
        seen: what of the text was in the training data, if that is known. gold: alignments by hand.
    """
    outputs, complete = [one.text for one in translations], [one.complete for one in translations]
    scored = Scored(text.sources or [], outputs, text.references, complete)
    tables = [breakdown.by_length(scored)]
    if seen is not None:
        tables += [breakdown.by_rarest_word(scored, seen.src_counts), breakdown.by_frequency(scored, seen.tgt_counts)]
        tables.append(breakdown.by_seen(scored, seen))
    tables += _attention_tables(translations)
    tables.append(diagnostics.exposure(*([-np.array(one.token_log_probs) for one in scored] for scored in (led, free))))
    best, worst = breakdown.extremes(scored, EXTREMES)
    error = None
    if gold is not None:
        check_links(gold, text.sources or [], text.references[0])
        error = alignment_error(_links(led, system), gold)
    return Details(tables, breakdown.faults(scored), best, worst, error)


def _attention_tables(translations: Sequence[Translation]) -> list[Table]:
    """None for a model that looks at nothing."""
    looked = [(one.attention, one.src_tokens) for one in translations if one.has_attention]
    if not looked:
        return []
    attentions, sources = [attention for attention, _ in looked], [tokens for _, tokens in looked]
    return [
        diagnostics.by_position(attentions),
        diagnostics.by_coverage(attentions),
        diagnostics.neglected(attentions, sources),
    ]


def _links(led: Sequence[ScoredPair], system: System) -> list[Links]:
    """Where the words of the references looked."""
    tokenizers = system.translator.src_tokenizer, system.translator.tgt_tokenizer
    looked = [Translation(one.source, one.text, one.src_tokens, one.tokens, attention=one.attention) for one in led]
    return [frozenset(align(one, tokenizers)) for one in looked]
