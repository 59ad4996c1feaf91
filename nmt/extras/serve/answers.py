"""From requests to answers: a queue, one thread that translates, and its tasks."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import exp
from threading import Lock
from typing import Any
from unicodedata import east_asian_width

import torch
from torch.nn import functional

from nmt.data.batches import pad_sources
from nmt.decoding.alignment import token_to_word, translation_to_dict, word_weights
from nmt.decoding.translator import Translation, Translator
from nmt.decoding.warnings import DESCRIPTIONS, WarningChecker
from nmt.errors import DataError, NmtError
from nmt.extras.serve.schemas import Run
from nmt.extras.texts.glossary import Glossary
from nmt.extras.texts.marked import Marked
from nmt.extras.texts.translator import TextTranslator
from nmt.model.interface import TranslationModel
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import SOS, SPECIALS, UNK

logger = logging.getLogger(__name__)

DEFECT = "an error inside the server; its log has the details"
DIGITS = 4  # of weights and probabilities
MAX_WEIGHTS = 1 << 18  # of an attention matrix in an answer
CHARACTERS = 200  # of a text that counts as one; longer ones count as several
MIN_PROBABILITY = 0.002  # of an alternative; less probable tokens start nonsense


def size_of(texts: Sequence[str]) -> int:
    """How many texts of usual length these are."""
    return sum(1 + len(text) // CHARACTERS for text in texts)


class QueueFullError(NmtError):
    """The queue has no room for a request."""


Terms = tuple[tuple[str, str], ...]  # of a glossary: pairs (source, target)

# Answers several requests at once: one result for each. The requests of equal tasks may be answered
# together.
Task = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class _Job:
    task: Task
    request: Any
    n_texts: int
    future: "Future[Any]" = field(default_factory=Future)


class Batcher:
    """Answers requests in a thread of its own, in order, those with equal tasks together.

    Args:
        capacity: texts that may wait; this bounds the memory of all requests.
        max_batch: texts that are translated together.
    """

    def __init__(self, capacity: int, max_batch: int) -> None:
        self.capacity, self.max_batch = capacity, max_batch
        self._jobs: list[_Job] = []
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, "translate")

    @property
    def n_waiting(self) -> int:
        """Texts in the queue, without those of cancelled requests."""
        return sum(job.n_texts for job in self._jobs if not job.future.cancelled())

    def stop(self) -> None:
        """Answer the requests that wait, and return. No other may come afterwards."""
        self._thread.shutdown()

    def submit(self, task: Task, request: Any, n_texts: int) -> "Future[Any]":
        """Put a request into the queue. Cancelling its future takes it out again, in time.

        Raises:
            QueueFullError: there is no room for `n_texts` more texts.
        """
        job = _Job(task, request, n_texts)
        with self._lock:
            self._jobs = [job for job in self._jobs if not job.future.cancelled()]
            if self.n_waiting + n_texts > self.capacity:
                raise QueueFullError(
                    f"the queue is full: {self.n_waiting} of at most {self.capacity} texts wait; "
                    "try again later"
                )
            self._jobs.append(job)
            self._thread.submit(self._answer_next)
        return job.future

    def _answer_next(self) -> None:
        """Answer the first job, and all that can be answered with it.

        There may be none: an earlier call has answered more than one.
        """
        taken: list[_Job] = []
        n_texts = 0
        with self._lock:
            for job in self._jobs:
                fits = n_texts + job.n_texts <= self.max_batch
                if not taken or (job.task == taken[0].task and fits):
                    taken.append(job)
                    n_texts += job.n_texts
            self._jobs = [job for job in self._jobs if job not in taken]
        _answer([job for job in taken if job.future.set_running_or_notify_cancel()])


def _answer(jobs: Sequence[_Job]) -> None:
    """Answer jobs together; if that fails, each alone: a bad request has no effect on others."""
    if not jobs:
        return
    try:
        results = jobs[0].task([job.request for job in jobs])
    except Exception as error:  # whatever it is, the thread continues with other requests
        if len(jobs) > 1:
            for job in jobs:
                _answer([job])
        elif isinstance(error, NmtError):
            jobs[0].future.set_exception(error)
        else:
            logger.exception("a request failed")
            jobs[0].future.set_exception(NmtError(DEFECT))
        return
    for job, result in zip(jobs, results, strict=True):
        job.future.set_result(result)


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A run that translates. info: what clients get to know of it."""

    info: Run
    translator: TextTranslator
    checker: WarningChecker

    def translator_with(self, terms: Terms) -> TextTranslator:
        """The translator with a glossary. Raises: DataError if a term cannot be used."""
        if not terms:
            return self.translator
        return TextTranslator.of(self.translator, glossary=Glossary.of(dict(terms)))


@dataclass(frozen=True)
class TranslateTask:
    """Translates the lines of several requests at once.

    A request has lines, and the start of each translation. A result has for each line the texts of
    its translations, best first, and all details for JSON (`schemas.LineDetails`) or None.

    Args:
        terms: the glossary of the requests.
    """

    run: ServedRun
    n: int
    details: bool
    terms: Terms = ()

    def __call__(self, requests: Sequence[tuple[Sequence[str], str]]) -> list[list[Any]]:
        lines = [line for lines, _ in requests for line in lines]
        prefixes = [prefix for lines, prefix in requests for _ in lines]
        translator = self.run.translator_with(self.terms)
        results = translator.translate_n_best(lines, self.n, prefixes if any(prefixes) else None)
        details = (
            all_details(results, self.run, translator) if self.details else [None] * len(lines)
        )
        rows = zip([[each.text for each in best] for best in results], details, strict=True)
        return [[*islice(rows, len(lines))] for lines, _ in requests]


@dataclass(frozen=True)
class MarkedTask:
    """Translates texts with markup. A result has for each the translation with its markup, keys of
    its warnings, and details or None.
    """

    run: ServedRun
    details: bool
    terms: Terms = ()

    def __call__(self, requests: Sequence[Sequence[Marked]]) -> list[list[Any]]:
        translator = self.run.translator_with(self.terms)
        texts = [text for texts in requests for text in texts]
        results = translator.translate_marked(texts)
        best = [[translation] for _, translation in results]
        details = all_details(best, self.run, translator) if self.details else [None] * len(texts)
        rows = (
            (marked, self.run.checker.warnings(translation), each)
            for (marked, translation), each in zip(results, details, strict=True)
        )
        return [[*islice(rows, len(texts))] for texts in requests]


def all_details(
    results: Sequence[Sequence[Translation]], run: ServedRun, translator: TextTranslator
) -> list[dict[str, Any]]:
    """`schemas.LineDetails` from the translations of each line, best first."""
    lines = [_line_details(translations, run) for translations in results]
    sentences = [
        [each["source"] for each in best.facts.get("sentences", ())] for best, *_ in results
    ]
    # The translation of a line does not show the other translations of each sentence.
    texts = [text for of_line in sentences if len(of_line) > 1 for text in of_line]
    translated = iter(translator.translate_n_best(texts, max(map(len, results))) if texts else [])
    for line, of_line in zip(lines, sentences, strict=True):
        if len(of_line) > 1:
            line["sentences"] = [_line_details(next(translated), run) for _ in of_line]
    return lines


def _line_details(translations: Sequence[Translation], run: ServedRun) -> dict[str, Any]:
    best, translator = translations[0], run.translator
    found = translations if best.src_tokens else ()
    is_short = best.attention.size <= MAX_WEIGHTS
    return {
        "source": best.source,
        "src_words": group_words(best.source, best.src_tokens, translator.src_tokenizer)[0],
        "src_cut": best.src_cut,
        "warnings": explained(run.checker.warnings(best)),
        "translations": [
            describe(translation, translator) if is_short else _outline(translation)
            for translation in found
        ],
    }


def _outline(translation: Translation) -> dict[str, Any]:
    """As `describe`, of a text so long that only its sentences have words and attention."""
    return {
        "text": translation.text,
        "tokens": translation.tokens,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "token_log_probs": translation.token_log_probs,
        "alignment": [],
        "replaced": [asdict(each) for each in translation.replaced],
        "complete": translation.complete,
        "confidence": translation.facts.get("confidence"),
        "words": [],
        "attention": None,
    }


def explained(warnings: Sequence[str]) -> list[str]:
    return [DESCRIPTIONS.get(warning, warning) for warning in warnings]


def find_alternatives(
    translator: Translator, text: str, first_tokens: Sequence[str], n: int
) -> list[tuple[str, float, Translation]]:
    """The n most probable next tokens after the first ones of a translation.

    The most probable token comes first; the others have at least `MIN_PROBABILITY`. Special tokens
    are no alternatives, but `<unk>` may be among the first tokens.

    Returns:
        Each token, its probability after the tokens before it, and the best translation that starts
        with these tokens.

    Raises:
        DataError: a token is not in the vocabulary, or the text is empty.
        TooLargeError: the text does not fit into memory, even alone.
    """
    vocabulary = translator.tgt_vocabulary
    for token in first_tokens:
        if token not in vocabulary and token != SPECIALS[UNK]:
            raise DataError(f"token {token!r} is not in the target vocabulary")
    (src_tokens,) = translator.src_tokenizer.split_all([text])
    src = translator.src_vocabulary.ids(src_tokens[: translator.options.max_source_tokens])
    if not src:
        raise DataError("the text is empty, so its translation has no alternatives")
    prefix = vocabulary.ids(first_tokens)
    likely = _next_tokens(translator.model, src, prefix, min(n, len(vocabulary) - len(SPECIALS)))
    offered = [likely[0], *(each for each in likely[1:] if each[1] >= MIN_PROBABILITY)]
    starts = [[*prefix, index] for index, _ in offered]
    translations = translator.continue_prefixes([text] * len(starts), starts, 1)
    tokens = vocabulary.tokens([index for index, _ in offered])
    return [
        (token, probability, best)
        for token, (_, probability), (best, *_) in zip(tokens, offered, translations, strict=True)
    ]


@torch.inference_mode()
def _next_tokens(
    model: TranslationModel, src: Sequence[int], prefix: Sequence[int], n: int
) -> list[tuple[int, float]]:
    """The n most probable target ids after those of `prefix`, with their probabilities.

    Args:
        src, prefix: ids without <sos> and <eos>.
    """
    padded, src_lengths = pad_sources([src])
    memory = model.encode(padded.to(model.device), src_lengths)
    state = model.start(memory)
    for index in (SOS, *prefix):
        output = model.step(torch.tensor([index], device=model.device), state, memory)
        state = output.state
    log_probs = functional.log_softmax(model.compute_logits(output.vector)[0].float(), dim=0)
    log_probs[: len(SPECIALS)] = float("-inf")
    best = log_probs.topk(n)
    return [*zip(best.indices.tolist(), map(exp, best.values.tolist()), strict=True)]


@dataclass(frozen=True)
class AlternativesTask:
    """Finds the alternatives for a word, for `AlternativesAnswer`.

    A request is a text and the tokens before the word.
    """

    run: ServedRun
    n: int

    def __call__(self, requests: Sequence[tuple[str, Sequence[str]]]) -> list[list[dict[str, Any]]]:
        return [[*self._results(text, tokens)] for text, tokens in requests]

    def _results(self, text: str, given: Sequence[str]) -> Iterator[dict[str, Any]]:
        vocabulary, tokenizer = (
            self.run.translator.tgt_vocabulary,
            self.run.translator.tgt_tokenizer,
        )
        tokens: list[str] = []
        for token in given:
            # A number, an address or a term is one token in the details, but not for the model.
            parts = tokenizer.split(tokenizer.join([token]))
            is_known = token in vocabulary or any(part not in vocabulary for part in parts)
            tokens += [token] if is_known else parts
        first: dict[str, tuple[float, Translation]] = {}
        for _, probability, best in find_alternatives(self.run.translator, text, tokens, self.n):
            # different tokens may be joined to the same text
            first.setdefault(best.text, (probability, best))
        for probability, best in first.values():
            details = describe(best, self.run.translator)
            for word in details["words"]:
                if word["token"] == len(tokens):  # otherwise the token continues the word before
                    yield {
                        "word": word["text"],
                        "probability": round(probability, DIGITS),
                        "translation": details,
                        "warnings": explained(self.run.checker.warnings(best)),
                    }


def describe(translation: Translation, translator: Translator) -> dict[str, Any]:
    """All about a translation of a text that is not empty, for `schemas.TranslationDetails`."""
    replacements = {replacement.position: replacement for replacement in translation.replaced}
    written = [
        replacements[position].token if position in replacements else token
        for position, token in enumerate(translation.tokens)
    ]
    texts, rows = group_words(translation.text, written, translator.tgt_tokenizer)
    tokens_of: list[list[int]] = [[] for _ in texts]
    for position, row in enumerate(rows):
        if 0 <= row < len(texts):
            tokens_of[row].append(position)
    words: list[dict[str, Any]] = []
    end, first_token = 0, 0
    for text, own in zip(texts, tokens_of, strict=True):
        start = max(translation.text.find(text, end), end)
        last_token = max(own, default=first_token - 1)
        # Tokens that add no text belong to the next word.
        tokens = range(first_token, last_token + 1)
        origins = [replacements[position].origin for position in own if position in replacements]
        log_prob = sum(translation.token_log_probs[position] for position in tokens)
        words.append(
            {
                "text": text,
                "before": translation.text[end:start],
                "token": first_token,
                "probability": round(exp(log_prob), DIGITS),
                "origin": origins[-1] if origins else "model",
            }
        )
        end, first_token = start + len(text), last_token + 1
    attention = None
    if translation.has_attention:
        source, src_tokens = translation.source, translation.src_tokens
        _, columns = group_words(source, src_tokens, translator.src_tokenizer)
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
