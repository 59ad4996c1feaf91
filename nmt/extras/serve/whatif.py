"""How much a translation owes to each source word; and what the beam kept on the way to it."""

from collections.abc import Sequence
from itertools import accumulate
from math import exp, inf
from typing import Any

import numpy as np

from nmt.decoding.forced import score_batch
from nmt.decoding.hypothesis import BeamStep
from nmt.decoding.search import search
from nmt.errors import DataError
from nmt.extras.serve.answers import DIGITS, ServedRun, group_words, target_ids
from nmt.text.vocabulary import EOS

MAX_LOSSES = 1 << 15  # of an answer; a step of the model computes each


def losses_without(run: ServedRun, text: str, tokens: Sequence[str]) -> list[list[float]]:
    """For `schemas.WithoutAnswer`. Raises: DataError: a token is unknown, or too many."""
    translator = run.texts.sentence_translator
    advice = "a translation with a placeholder, tag or term has no probability"
    parts = target_ids(translator, tokens, advice)
    tgt = [index for ids in parts for index in ids]
    src_tokens = translator.src_tokenizer.split(text)[: translator.options.max_source_tokens]
    words, places = group_words(text, src_tokens, translator.src_tokenizer)
    if len(words) < 2:
        return []  # without its only word, there is nothing to translate
    if len(words) * len(tgt) > MAX_LOSSES:
        raise DataError(f"{len(words)} words with {len(tgt)} tokens are too many; split the text")
    placed = [*zip(src_tokens, places, strict=True)]
    sources = [[token for token, place in placed if place != word] for word in range(len(words))]
    src = [*map(translator.src_vocabulary.ids, [src_tokens, *sources])]
    scored = score_batch(translator.model, src, [tgt] * len(src))
    # A token of the details may be several ones for the model.
    borders = [*accumulate(map(len, parts), initial=0), len(tgt) + 1]
    sums = np.array([[*accumulate(log_probs, initial=0.0)] for log_probs in scored])[:, borders]
    losses: list[list[float]] = np.diff(sums[0] - sums[1:]).round(DIGITS).tolist()
    return losses


def beam_tree(run: ServedRun, text: str) -> list[dict[str, Any]]:
    """For `schemas.TreeAnswer`. Raises: DataError if the text is empty, or the run has no beam."""
    translator = run.texts.sentence_translator
    options = translator.options
    src_tokens = translator.src_tokenizer.split(text)[: options.max_source_tokens]
    if not src_tokens or options.search != "beam":
        raise DataError("there is no beam: the text is empty, or the run draws samples")
    src, steps = translator.src_vocabulary.ids(src_tokens), list[BeamStep]()
    (best,) = search(translator.model, [src], options, n_best=options.beam, steps=steps)
    ranks = {(*each.ids, *[EOS] * each.complete): rank for rank, each in enumerate(best)}
    nodes, slots = list[dict[str, Any]](), list[int | None]([None])
    begun: dict[int | None, tuple[tuple[int, ...], float]] = {None: ((), 0.0)}
    for step in steps:
        columns = (part[0].tolist() for part in (step.ids, step.parents, step.log_probs))
        parents, slots = slots, []
        for index, slot, log_prob in zip(*columns, strict=True):
            place, parent = len(nodes), parents[slot]
            slots.append(place)
            if log_prob == -inf:
                continue  # the slot is free
            path, total = begun[parent]
            path, total = begun[place] = (*path, index), total + log_prob
            (token,) = translator.tgt_vocabulary.tokens([index])
            rank = ranks.get(path)
            node = {"text": token, "parent": parent, "rank": rank, "log_prob": total}
            node["probability"] = round(exp(log_prob), DIGITS)
            nodes.append(node | {"ends": index == EOS or rank is not None})
    return nodes
