"""From requests to answers: a queue, one thread that translates, and its tasks."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import exp, inf
from typing import Any, NamedTuple
from unicodedata import east_asian_width

import numpy as np

from nmt.decoding.alignment import (
    token_to_word,
    translation_to_dict,
    word_weights,
    written_tokens,
)
from nmt.decoding.hypothesis import BeamStep
from nmt.decoding.model import TranslationModel, k_best
from nmt.decoding.search import search
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import DataError, NmtError
from nmt.extras.serve.schemas import Run
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import EOS, SOS, SPECIALS, UNK
from nmt.texts.glossary import Glossary
from nmt.texts.join import TranslatedText
from nmt.texts.marked import Marked
from nmt.texts.translator import TextTranslator
from nmt.texts.warnings import DESCRIPTIONS

logger = logging.getLogger(__name__)

DEFECT = "an error inside the server; its log has the details"
DIGITS = 4  # of weights and probabilities
MAX_WEIGHTS = 1 << 18  # of an attention matrix in an answer
MIN_PROBABILITY = 0.002  # of an alternative; less probable tokens start nonsense


class QueueFullError(NmtError):
    """The queue has no room for a request."""


# Answers several requests at once: one result for each. The requests of equal tasks may be answered
# together.
Task = Callable[[Sequence[Any]], Sequence[Any]]


class _Job(NamedTuple):
    task: Task
    request: Any
    n_texts: int
    future: "asyncio.Future[Any]"


class Batcher:
    """Answers requests in a thread, in order, those with equal tasks together.

    Args:
        capacity: texts that may wait; this bounds the memory of all requests.
        max_batch: texts that are translated together.
    """

    def __init__(self, capacity: int, max_batch: int) -> None:
        self.capacity, self.max_batch = capacity, max_batch
        self._jobs: list[_Job] = []
        self._work: asyncio.Task[None] | None = None

    @property
    def n_waiting(self) -> int:
        """Texts in the queue, without those of cancelled requests."""
        return sum(job.n_texts for job in self._jobs if not job.future.done())

    def submit(
        self, task: Task, request: Any, n_texts: int, *, is_new: bool = True
    ) -> "asyncio.Future[Any]":
        """Put a request into the queue. Cancelling its future takes it out again.

        Args:
            is_new: False: it goes on with one that was accepted, and finds room in any case.

        Raises:
            QueueFullError: others wait, and there is no room for `n_texts` more texts.
        """
        if is_new and self.n_waiting and self.n_waiting + n_texts > self.capacity:
            raise QueueFullError(
                f"the queue is full: {self.n_waiting} of at most {self.capacity} texts wait; "
                "try again later"
            )
        job = _Job(task, request, n_texts, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        return job.future

    async def _answer_all(self) -> None:
        while taken := self._next_batch():
            await _answer(taken)

    def _next_batch(self) -> list[_Job]:
        """Take out the first job, and all that can be answered with it."""
        waiting = [job for job in self._jobs if not job.future.done()]
        taken, self._jobs, n_texts = list[_Job](), [], 0
        for job in waiting:
            fits = n_texts + job.n_texts <= self.max_batch
            if not taken or (job.task == taken[0].task and fits):
                taken.append(job)
                n_texts += job.n_texts
            else:
                self._jobs.append(job)
        return taken


async def _answer(jobs: Sequence[_Job]) -> None:
    """Answer jobs together; if that fails, each alone: a bad request has no effect on others."""
    try:
        results = await asyncio.to_thread(jobs[0].task, [job.request for job in jobs])
    except Exception as error:  # whatever it is, others are answered
        if len(jobs) > 1:
            for job in jobs:
                await _answer([job])
            return
        if not isinstance(error, NmtError):
            logger.exception("a request failed")
            error = NmtError(DEFECT)
        if not jobs[0].future.done():
            jobs[0].future.set_exception(error)
        return
    for job, result in zip(jobs, results, strict=True):
        if not job.future.done():  # its client is there
            job.future.set_result(result)


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A run that translates texts. info: what clients get to know of it."""

    info: Run
    texts: TextTranslator


class Answer(NamedTuple):
    """The translations of a text, best first; the warnings, as keys or plain text; and
    `schemas.LineDetails` or None.
    """

    translations: list[Marked]
    warnings: list[str]
    details: dict[str, Any] | None


@dataclass(frozen=True)
class TranslateTask:
    """Translates the texts of several requests at once. A result has the `Answer` to each text.

    Args:
        n: translations of each text.
        terms: the glossary of the requests: pairs (source, target).
        prefix: the start of all translations.
    """

    run: ServedRun
    n: int = 1
    terms: tuple[tuple[str, str], ...] = ()
    prefix: str = ""
    details: bool = False

    def __call__(self, requests: Sequence[Sequence[Marked]]) -> list[list[Answer]]:
        """Raises: DataError if a term or the prefix cannot be used."""
        texts = [text for texts in requests for text in texts]
        translator = self.run.texts
        if self.terms:
            translator = translator.with_glossary(Glossary.of(dict(self.terms)))
        if self.prefix:
            found = translator.translate_n_best(
                [text.text for text in texts], self.n, [self.prefix] * len(texts)
            )
            results = [[TranslatedText(each, Marked(each.text)) for each in best] for best in found]
        else:
            results = translator.translate_marked(texts, self.n)
        answers = (
            Answer(
                [each.marked for each in best],
                translator.warnings(best[0].translation),
                line_details([each.translation for each in best], self.run)
                if self.details
                else None,
            )
            for best in results
        )
        return [[*islice(answers, len(texts))] for texts in requests]


def line_details(translations: Sequence[Translation], run: ServedRun) -> dict[str, Any]:
    """`schemas.LineDetails` from the translations of a line, best first."""
    best, translator = translations[0], run.texts.sentence_translator
    details = {
        "source": best.source,
        "src_words": group_words(best.source, best.src_tokens, translator.src_tokenizer)[0],
        "src_cut": best.src_cut,
        "warnings": explained(run.texts.warnings(best)),
        "translations": [describe(each, translator) for each in translations if each.src_tokens],
    }
    if best.sentences:
        ranks = [each.sentences for each in translations]
        # The last translation of a sentence stands in all further ones of the line.
        sentences = [{id(each): each for each in ranked} for ranked in zip(*ranks, strict=True)]
        details["sentences"] = [line_details([*each.values()], run) for each in sentences]
    return details


def explained(warnings: Sequence[str]) -> list[str]:
    return [DESCRIPTIONS.get(warning, warning) for warning in warnings]


def find_alternatives(
    run: ServedRun, text: str, given: Sequence[str], n: int
) -> Iterator[dict[str, Any]]:
    """The words that could follow the given tokens of a translation, for `AlternativesAnswer`.

    They begin with the n most probable tokens, the best one first; the others have at least
    `MIN_PROBABILITY`. Special tokens are no alternatives.

    Raises:
        DataError: a token is not in the vocabulary, or the text is empty.
        TooLargeError: the text does not fit into memory, even alone.
    """
    translator = run.texts.sentence_translator
    vocabulary = translator.tgt_vocabulary
    prefix = target_ids(translator, given)
    (src_tokens,) = translator.src_tokenizer.split_all([text])
    src = translator.src_vocabulary.ids(src_tokens[: translator.options.max_source_tokens])
    if not src:
        raise DataError("the text is empty, so its translation has no alternatives")
    likely = _next_tokens(translator.model, src, prefix, min(n, len(vocabulary) - len(SPECIALS)))
    offered = [likely[0], *(each for each in likely[1:] if each[1] >= MIN_PROBABILITY)]
    starts = [[*prefix, index] for index, _ in offered]
    translations = translator.continue_prefixes([text] * len(starts), starts, 1)
    # Different tokens may be joined to the same text: the first one counts.
    found: dict[str, tuple[Translation, float]] = {}
    for (best, *_), (_, probability) in zip(translations, offered, strict=True):
        found.setdefault(best.text, (run.texts.judged(best), probability))
    for best, probability in found.values():
        details = describe(best, translator)
        for word in details["words"]:
            if word["token"] == len(prefix):  # otherwise the token continues the word before
                yield {
                    "word": word["text"],
                    "probability": round(probability, DIGITS),
                    "translation": details,
                    "warnings": explained(run.texts.warnings(best)),
                }


def beam_tree(run: ServedRun, text: str) -> list[dict[str, Any]]:
    """What the beam kept on the way to a translation, for `schemas.TreeAnswer`.

    Raises: DataError if the text is empty, or the run has no beam.
    """
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


def target_ids(translator: Translator, tokens: Sequence[str]) -> list[int]:
    """The ids of the tokens of details. Raises: DataError for an unknown token."""
    vocabulary, tokenizer = translator.tgt_vocabulary, translator.tgt_tokenizer
    ids = list[int]()
    for token in tokens:
        is_known = token in vocabulary or token == SPECIALS[UNK]
        # A number, an address or a term is one token in the details, but not for the model.
        parts = [token] if is_known else tokenizer.split(tokenizer.join([token]))
        if not is_known and any(part not in vocabulary for part in parts):
            raise DataError(
                f"token {token!r} is not in the target vocabulary; choose a word before this "
                "placeholder, tag, term or unknown word"
            )
        ids += vocabulary.ids(parts)
    return ids


def _next_tokens(
    model: TranslationModel, src: Sequence[int], prefix: Sequence[int], n: int
) -> list[tuple[int, float]]:
    """The n most probable target ids after those of `prefix`, with their probabilities.

    Args:
        src, prefix: ids without <sos> and <eos>.
    """
    memory, state = model.encode([src])
    for index in (SOS, *prefix):
        output = model.step(np.array([index]), state, memory)
        state = output.state
    log_probs = model.log_probs(output.vectors).astype(np.float64)
    log_probs[:, : len(SPECIALS)] = -np.inf
    ids, best = k_best(log_probs, n)
    return [*zip(ids[0].tolist(), map(exp, best[0].tolist()), strict=True)]


def describe(translation: Translation, translator: Translator) -> dict[str, Any]:
    """All about a translation of a text that is not empty, for `schemas.TranslationDetails`."""
    texts, rows = group_words(
        translation.text, written_tokens(translation), translator.tgt_tokenizer
    )
    last_token = {row: position for position, row in enumerate(rows)}
    origins = {each.position: each.origin for each in translation.replaced if each.token}
    words: list[dict[str, Any]] = []
    end, first = 0, 0
    for index, text in enumerate(texts):
        start = max(translation.text.find(text, end), end)
        # Tokens that add no text belong to the next word.
        tokens = range(first, last_token.get(index, first - 1) + 1)
        log_prob = sum(translation.token_log_probs[position] for position in tokens)
        replaced = [origins[position] for position in tokens if position in origins]
        words.append(
            {
                "text": text,
                "before": translation.text[end:start],
                "token": first,
                "probability": round(exp(log_prob), DIGITS),
                "origin": replaced[-1] if replaced else "model",
            }
        )
        end, first = start + len(text), tokens.stop
    attention = None
    if translation.has_attention and translation.attention.size <= MAX_WEIGHTS:
        _, columns = group_words(
            translation.source, translation.src_tokens, translator.src_tokenizer
        )
        weights = word_weights(translation.attention[: len(rows)], rows, columns)
        attention = [[round(weight, DIGITS) for weight in row] for row in weights.tolist()]
    return {
        **translation_to_dict(translation, translator.tokenizers),
        "confidence": translation.facts.get("confidence"),
        "words": words,
        "attention": attention,
    }


def group_words(
    text: str, tokens: Sequence[str], tokenizer: Tokenizer
) -> tuple[list[str], list[int]]:
    """The words of a text, and for each token the index of its word; -1 if it adds no text.

    Words stand between spaces. In scripts that write no spaces, such as Chinese and Japanese, each
    token is a word.

    Args:
        tokens: of the text, after its normalization, and perhaps only of its first part.
    """
    if any(east_asian_width(character) in "WF" for character in text):
        words: list[str] = []
        indices = []
        for token in tokens:
            word = tokenizer.join([token])
            indices.append(len(words) if word else -1)
            words += [word] * bool(word)
        return words, indices
    indices = token_to_word(tokens, tokenizer.join)
    n_words = max(indices, default=-1) + 1
    written = [word for word in text.split() if tokenizer.normalize(word)]
    if len(written) != n_words:
        written = tokenizer.join(tokens).split()[:n_words]
    return written, indices
