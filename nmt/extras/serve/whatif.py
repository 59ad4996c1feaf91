"""What the beam kept on the way to a translation."""

from math import exp, inf
from typing import Any

from nmt.decoding.hypothesis import BeamStep
from nmt.decoding.search import search
from nmt.errors import DataError
from nmt.extras.serve.answers import DIGITS, ServedRun
from nmt.text.vocabulary import EOS


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
