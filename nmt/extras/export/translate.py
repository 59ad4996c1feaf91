"""Translates with a model that `nmt export` wrote, by onnxruntime and NumPy alone.

    pip install -r requirements.txt
    python translate.py "How are you?"    # or --file FILE, or lines on stdin: one output line each

    from translate import Translator
    print(Translator("FOLDER").translate(["How are you?"]))

It finds the translations that nmt finds: with the same tokens, the same beam search (Wu 2016, eq.
14, without the coverage penalty), and the same replacement of unknown words; and it copies lines
without words, as nmt does. B sentences are searched together, b of them still open; each has a beam
with K slots for hypotheses, in rows R = b * K. S source length, T output length.
"""

import argparse
import hashlib
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

# No telemetry; onnxruntime reads it when it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

FORMAT = 1
PAD, UNK, SOS, EOS = range(4)
SPECIALS = ("<pad>", "<unk>", "<sos>", "<eos>")
EXTRA_TOKENS = 10  # that any translation may have beyond max_length_ratio
MIN_LENGTH = 16  # tokens; shorter sentences count as this long when batches are cut
MAX_SEARCH_TOKENS = 1 << 15  # of a batch: sentences * beam * source length
MAX_STRINGS = 300_000  # kept by spaCy
LINES_AT_ONCE = 2048

# The folder may come from a stranger: nothing in it names other files or takes all memory.
MAX_SETTINGS_BYTES, MAX_TEXT_BYTES, MAX_GRAPH_BYTES = 1 << 26, 1 << 28, 1 << 31
EXTERNAL = b"location"  # in a graph: the values of a tensor are in another file
SUBWORDS = ("bpe", "unigram")
TOKENIZERS = ("words", "characters", *SUBWORDS)
AGAIN = "copy the whole folder again, or write it again with `nmt export`"

JOINER = "￭"  # before a word without a space in front of it
SPACE = "▁"  # a space in subwords and characters
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+"
)

Array = np.ndarray[Any, Any]


class TranslationError(Exception):
    """The folder or the input cannot be used; the text says what to do. It is one line."""

    def __init__(self, text: str) -> None:
        super().__init__(normalize(text))


@dataclass(frozen=True)
class Translation:
    """A translation. attention: [T, S], a row for each token, <eos> included."""

    text: str
    score: float
    tokens: tuple[str, ...]
    src_tokens: tuple[str, ...]
    attention: Array


class Translator:
    """An exported model. Several threads may use it at once.

    Args:
        folder: that `nmt export` wrote.
        beam: beam size; 1: greedy search. Default: that of the model.
        threads: batches that are translated at the same time, one thread each.

    Raises:
        TranslationError: the folder is not complete or damaged, or a package that the tokenizer
            needs is missing.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, beam: int | None = None, threads: int = 1
    ) -> None:
        folder = Path(folder)
        settings = read_settings(folder)
        digests: dict[str, str] = settings["sha256"]
        self.threads = threads
        texts = (
            read_file(folder, f"{side}.vocab.txt", MAX_TEXT_BYTES, digests).decode()
            for side in ("src", "tgt")
        )
        src_tokens, self.tgt_tokens = (
            [line.split("\t")[0] for line in text.split("\n")[:-1]] for text in texts
        )
        self.options: dict[str, Any] = {**settings["decoding"], "words": len(self.tgt_tokens)}
        if beam is not None:
            self.options["beam"] = beam
        self.src_ids = {
            token: index for index, token in enumerate(src_tokens) if index >= len(SPECIALS)
        }
        self.not_copied: str | None = settings["not_copied"]
        tokenizers = settings["tokenizers"]
        is_subwords = tokenizers["src"]["kind"] in SUBWORDS
        model = read_file(folder, "src.spm.model", MAX_TEXT_BYTES, digests) if is_subwords else b""
        self.src_tokenizer, self.tgt_tokenizer = (
            Tokenizer(**tokenizers["src"], model=model),
            Tokenizer(**tokenizers["tgt"]),
        )
        self.encoder, self.decoder = (
            Graph(folder, name, digests) for name in ("encoder.onnx", "step.onnx")
        )

    def translate(self, texts: Sequence[str]) -> list[str]:
        """One translation per text, in the same order; an empty text gives an empty one."""
        return [best[0].text for best in self.translate_n_best(texts, 1)]

    def translate_n_best(self, texts: Sequence[str], n: int) -> list[list[Translation]]:
        """The n best translations of each text, best first; fewer if fewer were found.

        Raises:
            TranslationError: the beam is narrower than `n`.
        """
        if not 1 <= n <= self.options["beam"]:
            raise TranslationError(
                f"{n} translations per sentence: the beam is {self.options['beam']}; "
                "set it with --beam"
            )
        limit = self.options["max_source_tokens"]
        sources = [tokens[:limit] for tokens in self.src_tokenizer.split_all(texts)]
        results = [[Translation("", 0.0, (), (), np.zeros((0, 1), np.float32))] for _ in texts]
        lengths = [len(tokens) for tokens in sources]
        for i, text in enumerate(texts):
            if lengths[i] and self._is_copied(text):
                tokens, lengths[i] = tuple(sources[i]), 0
                copy = text if text.isprintable() else normalize(text)
                attention = np.eye(len(tokens) + 1, dtype=np.float32)
                results[i] = [Translation(copy, 0.0, tokens, tokens, attention)]
        batches = self._plan(lengths)
        batches.reverse()  # longest first: all threads end at about the same time
        pairs = [[(texts[i], sources[i]) for i in batch] for batch in batches]
        with ThreadPoolExecutor(self.threads) as pool:
            found = pool.map(self._translate_batch, pairs, repeat(n))
            for i, best in zip(chain(*batches), chain.from_iterable(found), strict=True):
                results[i] = best
        return results

    def _is_copied(self, text: str) -> bool:
        """Whether there is nothing to translate: no letters, and no foreign sign such as "。"."""
        if self.not_copied is None or any(map(str.isalpha, text)):
            return False
        return text.isascii() or set(self.not_copied).isdisjoint(text)

    def _plan(self, lengths: Sequence[int]) -> list[list[int]]:
        """Batches of indices, shortest sentences first. Those of length 0 are left out."""
        batches: list[list[int]] = []
        for i in sorted(
            (i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i]
        ):
            size = len(batches[-1]) + 1 if batches else 0
            cost = self.options["beam"] * max(lengths[i], MIN_LENGTH)
            if not batches or size > self.options["batch"] or size * cost > MAX_SEARCH_TOKENS:
                batches.append([])
            batches[-1].append(i)
        return batches

    def _translate_batch(
        self, batch: Sequence[tuple[str, list[str]]], n: int
    ) -> list[list[Translation]]:
        sources = [[self.src_ids.get(token, UNK) for token in tokens] for _, tokens in batch]
        found = Search(self.encoder, self.decoder, sources, self.options, n).run()
        results = []
        for (text, tokens), hypotheses in zip(batch, found, strict=True):
            best: dict[str, Translation] = {}
            for hypothesis in hypotheses:  # different tokens may be joined to the same text
                translation = self._to_translation(text, tokens, hypothesis)
                best.setdefault(translation.text, translation)
            results.append([*best.values()])
        too_few = [
            i
            for i, translations in enumerate(results)
            if len(translations) < n < self.options["beam"]
        ]
        if too_few:  # take them from the whole beam
            whole_beams = self._translate_batch([batch[i] for i in too_few], self.options["beam"])
            for i, translations in zip(too_few, whole_beams, strict=True):
                results[i] = translations[:n]
        return results

    def _to_translation(
        self, text: str, src_tokens: list[str], hypothesis: "Hypothesis"
    ) -> Translation:
        tokens = [self.tgt_tokens[index] for index in hypothesis.ids]
        written = tokens.copy()
        if self.options["replace_unknown"] and UNK in hypothesis.ids:
            # By the most-attended word (Luong 2015b).
            surfaces = self.src_tokenizer.surface_forms(text, src_tokens)
            for position, index in enumerate(hypothesis.ids):
                if index == UNK:
                    weights = hypothesis.attention[position, : len(src_tokens)]
                    peak = int(weights.argmax())
                    written[position] = surfaces[peak] if weights.any() else ""
        joined = self.tgt_tokenizer.join(token for token in written if token)
        return Translation(
            joined, hypothesis.score, tuple(tokens), tuple(src_tokens), hypothesis.attention
        )


class Graph:
    """A graph of the folder. Tensors `memory.*` have a row per sentence, `state.*` per hypothesis.

    The encoder takes `src` [B, S] and `src_lengths` [B], and gives the memory and the first state.
    The decoder takes memory and state for one step of all hypotheses, their last tokens `ids` [R],
    the `rows` [N] whose `k` best words are wanted, and `position`. It gives `best_ids` [N, k],
    `best_logits` [N, k], `log_norm` [N], `attention` [R, S], and the next state as `next.*`.
    """

    def __init__(self, folder: Path, name: str, digests: Mapping[str, str]) -> None:
        self.path = folder / name
        content = read_file(folder, name, MAX_GRAPH_BYTES, digests)
        if EXTERNAL in content:
            raise TranslationError(f"{self.path}: takes tensors from other files; {AGAIN}")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # batches run in threads of their own
        options.log_severity_level = 4  # errors are raised
        try:
            self.session = onnxruntime.InferenceSession(
                content,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=False,  # it would print to stdout
            )
            self.inputs = [graph_input.name for graph_input in self.session.get_inputs()]
            self.outputs = [output.name for output in self.session.get_outputs()]
        except Exception as error:  # noqa: BLE001 # the errors of onnxruntime have no other base class
            raise TranslationError(
                f"{self.path}: cannot be loaded ({first_line(error)}); {AGAIN}"
            ) from None

    def run(self, tensors: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name. Tensors that the graph does not take are ignored."""
        try:
            values: Any = self.session.run(None, {name: tensors[name] for name in self.inputs})
        except Exception as error:  # noqa: BLE001 # as above
            raise TranslationError(
                f"{self.path}: cannot be computed ({first_line(error)}); if the memory is large "
                f"enough, {AGAIN}"
            ) from None
        return dict(zip(self.outputs, values, strict=True))


def first_line(error: Exception) -> str:
    """The beginning of an error's text."""
    return str(error).strip().split("\n")[0][:300]


def read_file(folder: Path, name: str, max_bytes: int, digests: Mapping[str, str]) -> bytes:
    """A file of the folder, whose size, kind and SHA-256 are checked. Raises: TranslationError."""
    path = folder / name
    try:
        target = path.resolve(strict=True)
        if not target.is_relative_to(folder.resolve()):
            raise TranslationError(
                f"{path}: links to {target}, outside of the folder; copy the whole folder, without "
                "links"
            )
        if not target.is_file() or target.stat().st_size > max_bytes:
            raise TranslationError(f"{path}: not a file of at most {max_bytes:,} bytes; {AGAIN}")
        content = target.read_bytes()
    except (OSError, RuntimeError) as error:  # links in a circle
        reason = getattr(error, "strerror", None) or error
        raise TranslationError(f"{path}: {reason}; {AGAIN}") from None
    if digests and hashlib.sha256(content).hexdigest() != digests.get(name):
        raise TranslationError(
            f"{path}: damaged, its content has changed since nmt wrote it; {AGAIN}"
        )
    return content


def read_settings(folder: Path) -> dict[str, Any]:
    """The contents of settings.json, whose checksum is checked. Raises: TranslationError."""
    path = folder / "settings.json"
    content = read_file(folder, path.name, MAX_SETTINGS_BYTES, {})
    try:
        settings: dict[str, Any] = json.loads(content)
        checksum = settings.pop("checksum")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TranslationError(f"{path}: damaged ({first_line(error)}); {AGAIN}") from None
    if checksum != hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest():
        raise TranslationError(f"{path}: damaged (its content does not fit its checksum); {AGAIN}")
    if settings["format"] > FORMAT:
        raise TranslationError(
            f"{folder}: made by a newer nmt; use the translate.py of that folder"
        )
    return settings


@dataclass(frozen=True)
class Hypothesis:
    """A translation in ids, without <sos> and <eos>; not complete if cut at the maximum length.

    attention: [T, S], with a row for <eos> if complete.
    """

    ids: list[int]
    score: float
    attention: Array
    complete: bool


class Search:
    """Beam search for B sentences of source ids.

    In each step the K best extensions of a sentence's hypotheses become its hypotheses. Those that
    end leave the beam, and the sentence is decided when no open hypothesis can enter its n-best
    list any more.
    """

    def __init__(
        self,
        encoder: Graph,
        decoder: Graph,
        sources: Sequence[Sequence[int]],
        options: dict[str, Any],
        n_best: int,
    ) -> None:
        self.encoder, self.decoder, self.sources, self.options = encoder, decoder, sources, options
        self.n_best, self.size = n_best, options["beam"]
        n_sentences = len(sources)
        self.forbidden = [PAD, SOS, *([UNK] if options["forbid_unknown"] else [])]
        self.max_length = np.array(
            [float(int(options["max_length_ratio"] * (len(s) + 1)) + EXTRA_TOKENS) for s in sources]
        )
        self.min_length = np.array(
            [int(options["min_length_ratio"] * len(source)) for source in sources]
        )
        self.sentence = np.arange(n_sentences)  # [b], of those still in the batch
        self.log_prob = np.full((n_sentences, self.size), -np.inf)  # [b, K], -inf in free slots
        self.log_prob[:, 0] = 0
        self.last_ids = np.full((n_sentences, self.size), SOS)
        # To trace back: the row [B] of each sentence; ids and parents [b, K]; attention [b, K, S].
        self.steps: list[tuple[Array, Array, Array, Array]] = []
        self.finished: list[list[Hypothesis]] = [[] for _ in sources]
        # What a hypothesis must exceed to enter the n-best list.
        self.min_score = np.full(n_sentences, -np.inf)
        self.n_complete = np.zeros(n_sentences, np.int64)

    def run(self) -> list[list[Hypothesis]]:
        """The n best hypotheses of each sentence, best first."""
        memory, state = self._encode()
        # The rows of the state that the hypotheses continue.
        parents = np.arange(len(self.sources)).repeat(self.size)
        while len(self.sentence):
            state = {name: tensor[parents] for name, tensor in state.items()}
            ids, log_probs, attention, state = self._extend(memory, state)
            parents = self._choose(ids, log_probs, attention)
            self._finish()
            # Decided: no continuation scores more than this bound; with K complete hypotheses,
            # none that ends with the next token.
            best, is_enough = self.log_prob.max(1), self.n_complete[self.sentence] >= self.size
            length = np.where(is_enough, len(self.steps) + 1, self.max_length[self.sentence])
            bound = np.minimum(best, 0) / self._length_penalty(length)
            undecided = (best > -np.inf) & (bound > self.min_score[self.sentence])
            if not undecided.all():
                self.sentence, self.log_prob = self.sentence[undecided], self.log_prob[undecided]
                self.last_ids, parents = self.last_ids[undecided], parents[undecided]
                memory = {name: tensor[undecided] for name, tensor in memory.items()}
            parents = parents.ravel()
        return self.finished

    def _encode(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Memory and first state, with a row for each sentence."""
        lengths = np.array([len(source) + 1 for source in self.sources])
        src = np.full((len(self.sources), lengths.max()), PAD)
        for row, source in zip(src, self.sources, strict=True):
            row[: len(source) + 1] = [*source, EOS]
        tensors = self.encoder.run({"src": src, "src_lengths": lengths})
        memory, state = (
            {name: tensor for name, tensor in tensors.items() if name.startswith(part)}
            for part in ("memory.", "state.")
        )
        return memory, state

    def _extend(
        self, memory: dict[str, Array], state: dict[str, Array]
    ) -> tuple[Array, Array, Array, dict[str, Array]]:
        """The best K words or more for each hypothesis.

        Returns:
            ids and log-probabilities [b, K, k]; attention [R, S]; the next state.
        """
        is_open, t = self.log_prob > -np.inf, len(self.steps)
        too_short = (self.min_length[self.sentence] > t)[:, None].repeat(self.size, 1)[is_open]
        k = min(self.size + len(self.forbidden) + int(too_short.any()), self.options["words"])
        inputs = {"ids": self.last_ids.ravel(), "rows": np.flatnonzero(is_open)}
        inputs |= {"k": np.array(k), "position": np.array(t)}
        outputs = self.decoder.run(memory | state | inputs)
        best_ids, log_norm = outputs["best_ids"], outputs["log_norm"].astype(np.float64)
        best = outputs["best_logits"].astype(np.float64) - log_norm[:, None]
        best[np.isin(best_ids, self.forbidden) | (too_short[:, None] & (best_ids == EOS))] = -np.inf
        ids = np.zeros((*is_open.shape, k), np.int64)
        log_probs = np.full(ids.shape, -np.inf)
        ids[is_open], log_probs[is_open] = best_ids, best
        next_state = {
            name.replace("next.", "state."): tensor
            for name, tensor in outputs.items()
            if name.startswith("next.")
        }
        return ids, log_probs, outputs["attention"], next_state

    def _choose(self, ids: Array, log_probs: Array, attention: Array) -> Array:
        """Keep the best K extensions of each sentence; returns the rows [b, K] they continue."""
        n, k = len(self.sentence), ids.shape[2]
        total = (self.log_prob[:, :, None] + log_probs).reshape(n, -1)  # [b, K * k]
        chosen = np.argsort(-total, 1, kind="stable")[:, : self.size]
        parents, ids = chosen // k, np.take_along_axis(ids.reshape(n, -1), chosen, 1)
        row = np.full(len(self.sources), -1)
        row[self.sentence] = np.arange(n)
        self.steps.append((row, ids, parents, attention.reshape(n, self.size, -1)))
        self.log_prob, self.last_ids = np.take_along_axis(total, chosen, 1), ids
        rows: Array = parents + self.size * np.arange(n)[:, None]
        return rows

    def _finish(self) -> None:
        """Move the hypotheses that end here to the n-best lists, and free their slots."""
        t = len(self.steps)
        complete = self.last_ids == EOS
        ends = (complete | (self.max_length[self.sentence] <= t)[:, None]) & (
            self.log_prob > -np.inf
        )
        scores = self.log_prob / self._length_penalty(t)
        can_enter = ends & ((scores > self.min_score[self.sentence][:, None]) | ~complete)
        for row, slot in np.argwhere(can_enter):
            sentence = self.sentence[row]
            end = self._trace_back(sentence, slot, scores[row, slot], complete[row, slot])
            best = sorted(
                [*self.finished[sentence], end],
                key=lambda other: (not other.complete, -other.score),
            )[: self.n_best]
            self.finished[sentence] = best
            if len(best) == self.n_best and best[-1].complete:
                self.min_score[sentence] = best[-1].score
        self.n_complete[self.sentence] += (complete & ends).sum(1)
        self.log_prob = np.where(ends, -np.inf, self.log_prob)

    def _length_penalty(self, length: Any) -> Any:
        base = length if self.options["length_formula"] == "power" else (5 + length) / 6
        return base ** self.options["length_penalty"]

    def _trace_back(self, sentence: int, slot: int, score: float, complete: bool) -> Hypothesis:
        """The hypothesis that ends in a slot of the last step."""
        own_ids, own_attention = [], []
        for rows, ids, parents, attention in reversed(self.steps):
            row = rows[sentence]
            own_ids.append(int(ids[row, slot]))
            slot = parents[row, slot]
            own_attention.append(attention[row, slot, : len(self.sources[sentence]) + 1])
        own_ids = own_ids[:0:-1] if complete else own_ids[::-1]
        return Hypothesis(own_ids, float(score), np.stack(own_attention[::-1]), bool(complete))


class Tokenizer:
    """Text to tokens and back: words (spaCy), bpe or unigram (sentencepiece), or characters.

    Args:
        language: of spaCy's rules. version: of spaCy, with which the model was trained.
        model: of sentencepiece; None for a tokenizer that only joins tokens.
    """

    def __init__(
        self,
        kind: str,
        *,
        lowercase: bool = False,
        language: str = "",
        version: str = "",
        model: bytes | None = None,
    ) -> None:
        self.kind, self.lowercase, self.language = kind, lowercase, language
        self.mark, self.look_alike = (JOINER, "■") if kind == "words" else (SPACE, "_")
        if model is None or kind == "characters":
            return
        try:
            if kind == "words":
                import spacy.about

                if (installed := spacy.about.__version__) != version:
                    raise TranslationError(
                        f"spacy {installed}: splits other words than in training; install "
                        f"spacy=={version}"
                    )
                self.pipeline = spacy.blank(language)
            else:
                import sentencepiece

                self.subwords = sentencepiece.SentencePieceProcessor(model_proto=model)
        except ImportError as error:
            reason = (
                f"needs {error.name}" if error.name else f"cannot be loaded ({first_line(error)})"
            )
            raise TranslationError(
                f"the tokenizer {reason}; run `pip install -r requirements.txt`"
            ) from None
        except (OSError, RuntimeError) as error:
            raise TranslationError(
                f"src.spm.model: not a readable subword model ({first_line(error)}); {AGAIN}"
            ) from None

    def normalize(self, text: str) -> str:
        """As `normalize` below; a look-alike replaces the tokenizer's own mark."""
        text = normalize(text)
        return (normalize(text.lower()) if self.lowercase else text).replace(
            self.mark, self.look_alike
        )

    def split_all(self, texts: Sequence[str]) -> list[list[str]]:
        """The tokens of each text."""
        normalized = [self.normalize(text) for text in texts]
        if self.kind == "words":
            return [self._words(text) for text in normalized]
        if self.kind == "characters":
            return [list(text.replace(" ", SPACE)) for text in normalized]
        pieces, ids = (
            self.subwords.encode(normalized, out_type=kind, num_threads=1) for kind in (str, int)
        )
        unknown = self.subwords.unk_id()
        # sentencepiece joins neighboring unseen characters to one piece.
        return [
            [
                token
                for piece, index in zip(*sentence, strict=True)
                for token in (piece if index == unknown else [piece])
            ]
            for sentence in zip(pieces, ids, strict=True)
        ]

    def _words(self, text: str) -> list[str]:
        if len(self.pipeline.vocab.strings) > MAX_STRINGS:
            import spacy

            self.pipeline = spacy.blank(self.language)
        words: list[str] = []
        spaced = True
        for token in self.pipeline.tokenizer(text):
            words.append(token.text if spaced else JOINER + token.text)
            spaced = bool(token.whitespace_)
        return words

    def join(self, tokens: Iterable[str]) -> str:
        """Text on one line."""
        if self.kind == "words":
            text = "".join(
                token[1:] if token.startswith(JOINER) else f" {token}" for token in tokens
            )
        else:
            text = "".join(tokens).replace(SPACE, " ")
        return " ".join(text.split())

    def surface_forms(self, text: str, tokens: Sequence[str]) -> list[str]:
        """The `tokens` of `text` in the upper and lower case of the text."""
        normalized, written = self.normalize(text), normalize(text)
        # The characters of the text at each character of its normalized form.
        letters = [
            part for letter in written for part in (letter, *[""] * (len(letter.lower()) - 1))
        ]
        if len(letters) != len(normalized):
            letters = list(written if len(written) == len(normalized) else normalized)
        surfaces, position = [], 0
        for token in tokens:
            plain = self.join([token])
            start = normalized.find(plain, position)
            if start < 0 or not plain or not token.endswith(plain):
                surfaces.append(token)
                continue
            position = start + len(plain)
            surface = "".join(letters[start:position])
            surfaces.append(
                token.removesuffix(plain) + (surface if surface.lower() == plain.lower() else plain)
            )
        return surfaces


def normalize(text: str) -> str:
    """One line in Unicode NFC without invisible characters."""
    return unicodedata.normalize("NFC", " ".join(INVISIBLE.sub("", text).split()))


def read_options() -> argparse.Namespace:
    """Those of the command line."""
    parser = argparse.ArgumentParser(
        description="Translate sentences, a file or stdin. Prints one line for each line of input."
    )
    parser.add_argument(
        "sentences", nargs="*", metavar="SENTENCE", help="sentences, each in quotes"
    )
    parser.add_argument(
        "--file",
        type=Path,
        help="file with one sentence per line; default, without sentences: stdin",
    )
    parser.add_argument(
        "--beam",
        type=int,
        metavar="N",
        help="beam size; 1: greedy search; default: that of the model",
    )
    parser.add_argument(
        "--n-best",
        type=int,
        default=1,
        metavar="N",
        help="print the N best: number ||| text ||| score",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=min(4, os.cpu_count() or 1),
        metavar="N",
        help="default: %(default)s",
    )
    options = parser.parse_args()
    if (options.beam is not None and options.beam < 1) or options.threads < 1:
        parser.error("--beam and --threads: at least 1")
    return options


def main() -> None:
    """The command line."""
    options = read_options()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    try:
        translator = Translator(Path(__file__).parent, beam=options.beam, threads=options.threads)
        number = 0
        for texts in [options.sentences] if options.sentences else read_lines(options.file):
            for best in translator.translate_n_best(texts, options.n_best):
                for each in best:
                    line = f"{number} ||| {each.text} ||| {each.score:.4f}"
                    print(line if options.n_best > 1 else each.text)
                number += 1
            sys.stdout.flush()
    except (TranslationError, MemoryError) as error:
        advice = "the memory is too small; try a smaller --beam, or fewer --threads"
        sys.exit(f"translate.py: {str(error) or advice}")
    except UnicodeDecodeError as error:
        sys.exit(
            f"translate.py: {options.file or 'stdin'}: not UTF-8 ({error.reason}); save it as UTF-8"
        )
    except OSError as error:
        sys.exit(f"translate.py: {error.filename or 'input or output'}: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit(130)


def read_lines(path: Path | None) -> Iterator[list[str]]:
    """The lines of a file or of stdin, many at a time; of a keyboard, one at a time."""
    with open(
        sys.stdin.fileno() if path is None else path, encoding="utf-8-sig", newline="\n"
    ) as file:
        size = 1 if file.isatty() else LINES_AT_ONCE
        while lines := [*islice(file, size)]:
            if len(lines) == 1 and not lines[0].endswith("\n"):  # perhaps all lines end with \r
                lines = lines[0].removesuffix("\r").split("\r")
            yield [line.rstrip("\r\n") for line in lines]


if __name__ == "__main__":
    main()
