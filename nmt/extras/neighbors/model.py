"""Nearest-neighbor translation: at each step, the model also looks at similar training pairs.

After Khandelwal et al. 2021 (arXiv 2010.00710), with a small datastore for each sentence: the
training pairs with the most similar sources (Dai et al. 2023, arXiv 2302.12188). Each target token
of these pairs is a value. Its key is the vector that the model's readout gives at that token, with
teacher forcing.
"""

import csv
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import Config
from nmt.config.section import key_of
from nmt.data.corpus import Corpus, Sequences, encode_pairs
from nmt.data.reading import Pair
from nmt.data.tables import Dialect, find_dialect
from nmt.decoding.model import IdLists, StepOutput, Terms, TranslationModel, k_best
from nmt.decoding.onnx_model import CHUNK_ROWS
from nmt.errors import ConfigError, DataError
from nmt.extras.neighbors.datastore import KEYS_FILE, Datastore, digest_of, load_keys
from nmt.extras.neighbors.keys import NeighborsConfig
from nmt.files import is_as_written, warn_if_changed, write_recorded
from nmt.lines import read_lines
from nmt.plugins import import_object
from nmt.run.folder import load_tokenizers, load_vocabularies
from nmt.run.graphs import weights_digest

NEIGHBORS_FILE = "neighbors.tsv"
HEADER = "source\ttarget"
ADVICE = "write a source, a tab and a target in each line, in UTF-8"
MAX_BYTES = 1 << 30
# With a feature; more frequent features are not used: they say little and take the most time.
MAX_SENTENCES = 1 << 14
MAX_KEYS = 32  # nearest keys of a step; farther ones have hardly any weight
MAX_REMEMBERED = 1 << 17  # keys that are not stored: 256 MB, of 512 numbers each
# For smaller values of `decoding.neighbors.distance`, stored keys are rounded too much.
MIN_STORED_DISTANCE = 1e-3
# Of the softmax over the nearest keys, as a share of `decoding.neighbors.distance`.
TEMPERATURE = 1 / 3


def save_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write a table of raw sentences, one pair per line, whole or not at all."""
    write_recorded(path, "".join(f"{row}\n" for row in (HEADER, *map("\t".join, pairs))))


def load_pairs(path: Path) -> list[Pair]:
    """The pairs of a table, which nmt or a user has written; the header line may be missing, and
    cells may be in quotation marks, as spreadsheets write them.

    Raises:
        DataError: the file cannot be read, has no pairs, or a line is none (the message names it).
    """
    pairs: list[Pair] = []
    lines = read_lines(path, advice=ADVICE, max_bytes=MAX_BYTES)
    dialect = Dialect("\t", is_quoted=False)
    if lines and not is_as_written(path):
        dialect = find_dialect(path, None, dialect.delimiter)
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                cells = dialect.cells(line)
            except csv.Error:
                cells = []
            if len(cells) != 2 or not all(map(str.strip, cells)):
                raise DataError(
                    f"{path}, line {number}: expected a source and a target with a tab "
                    f"between, found {line!r}"
                )
            if (number, "\t".join(cells)) != (1, HEADER):
                pairs.append((cells[0], cells[1]))
    if not pairs:
        raise DataError(f"{path}: has no pairs; {ADVICE}")
    warn_if_changed(path)
    return pairs


def wrap(
    models: Sequence[TranslationModel], members: Sequence[tuple[Path, Path]], config: Config
) -> Sequence[TranslationModel]:
    """The models with similar pairs to look at, if `decoding.neighbors` is set.

    Raises:
        ConfigError: the run has no pairs, or it is not said at how many of a memory to look.
        DataError: the pairs are damaged, or cannot be read. CheckpointError: their keys are.
    """
    run, checkpoint = members[0]
    options, path = key_of(config.decoding, "neighbors", NeighborsConfig), run / NEIGHBORS_FILE
    if not options.pairs:
        if options.memory is not None:
            raise ConfigError(
                "decoding.neighbors.memory needs decoding.neighbors.pairs, such as 16"
            )
        return models
    texts, stored = Counter[Pair](), None
    if options.memory is not None:
        read_pairs = import_object("nmt.extras.init.measurement:read_pairs")
        memory = options.memory if isinstance(options.memory, list) else [options.memory]
        own, listing = read_pairs(memory, (config.data.src_language, config.data.tgt_language))
        texts.update(own)
        if listing:
            print(f"nmt: {listing}", file=sys.stderr)
    elif not path.exists():
        raise ConfigError(
            f"decoding.neighbors.pairs: {options.pairs} needs the training pairs in the run; "
            f"`nmt neighbors {run}` stores them"
        )
    elif options.distance >= MIN_STORED_DISTANCE:
        stored = load_keys(run / KEYS_FILE, digest_of(path, weights_digest(checkpoint)))
    vocabularies = load_vocabularies(run)
    pairs, datastore = stored or (
        encode_pairs([*texts] or load_pairs(path), load_tokenizers(run, config), vocabularies),
        None,
    )
    similar = SimilarSentences(pairs.src, len(vocabularies[0]))
    # The run has the keys of its own model alone.
    first = NeighborModel(models[0], pairs, similar, options, datastore, texts)
    others = (NeighborModel(model, pairs, similar, options, None, texts) for model in models[1:])
    return [first, *others]


@dataclass(frozen=True)
class MemoryWithNeighbors:
    """The memory of B sentences, and of their similar pairs.

    Attributes:
        memory: of the model.
        keys: [B, N, r], of the tokens of similar pairs; padded. In float64: of close vectors, the
            digits of float32 cancel in q^2 + k^2 - 2 q k.
        squares: [B, N], of the keys; infinite on padding.
        values: [B, N], the ids of these tokens.
        projection: [R, r], of a vector of the readout to a key; None if a key is the vector.
    """

    memory: Any
    keys: NDArray[np.float64]
    squares: NDArray[np.float64]
    values: NDArray[np.int64]
    projection: NDArray[np.float32] | None

    def select(self, rows: NDArray[np.int64]) -> "MemoryWithNeighbors":
        """The memory of the sentences `rows` [R], in that order."""
        return MemoryWithNeighbors(
            self.memory.select(rows),
            self.keys[rows],
            self.squares[rows],
            self.values[rows],
            self.projection,
        )


@dataclass(frozen=True)
class NeighborVectors:
    """The vectors of a step for N hypotheses.

    Attributes:
        vectors: of the model.
        ids: [N, k], the words y of the nearest keys.
        odds: [N, k], lambda p_neighbors(y) / (1 - lambda). rest: [N, 1], 1 - lambda.
    """

    vectors: Any
    ids: NDArray[np.int64]
    odds: NDArray[np.float64]
    rest: NDArray[np.float64]

    def select(self, rows: NDArray[np.int64]) -> "NeighborVectors":
        """Those of the hypotheses `rows` [N'], in that order."""
        return NeighborVectors(
            self.vectors.select(rows), self.ids[rows], self.odds[rows], self.rest[rows]
        )


class SimilarSentences:
    """Finds similar sentences in a collection of N.

    The features of a sentence are its ids and its pairs of adjacent ids. The weight of a feature is
    log(N / n), where n sentences have it. The similarity of two sentences is the cosine of their
    weights (Salton and Buckley 1988).

    Args:
        vocabulary_size: V; all ids are smaller.
    """

    def __init__(self, sentences: Sequences, vocabulary_size: int) -> None:
        self._base = vocabulary_size
        ids, lengths = sentences.block(0, len(sentences))
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        is_pair = sentence[1:] == sentence[:-1]
        features = np.concatenate([ids, self._pairs(ids)[is_pair]])
        sentence = np.concatenate([sentence, sentence[1:][is_pair]])
        # One number for both is sorted several times faster; a feature counts once in a sentence.
        in_order = np.sort(features * len(lengths) + sentence)
        features, self._sentences = np.divmod(
            in_order[np.diff(in_order, prepend=-1) > 0], len(lengths)
        )
        self._starts = np.flatnonzero(np.diff(features, prepend=-1))
        self._features = features[self._starts]
        counts = np.diff(self._starts, append=len(features))
        self._ends = self._starts + counts
        self._idf = np.log(len(sentences) / counts)
        self._is_used = counts <= MAX_SENTENCES
        squares = np.bincount(self._sentences, np.repeat(self._idf**2, counts), len(sentences))
        self._norms = np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))

    def rank(
        self, sentence: Sequence[int], n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The indices of at most n sentences with a feature of `sentence`, the most similar first;
        of equals, the earlier first. And the similarity of each, up to 1.
        """
        ids = np.asarray(sentence, np.int64)
        wanted = np.unique(np.concatenate([ids, self._pairs(ids)]))
        rows = np.searchsorted(self._features, wanted)
        rows = rows[rows < np.searchsorted(self._features, wanted, "right")]
        unseen = (len(wanted) - len(rows)) * np.log(len(self._norms)) ** 2
        norm = np.sqrt(max((self._idf[rows] ** 2).sum() + unseen, np.finfo(np.float64).tiny))
        similarity = np.zeros(len(self._norms))
        for row in rows[self._is_used[rows]]:
            similarity[self._sentences[self._starts[row] : self._ends[row]]] += self._idf[row] ** 2
        similarity /= self._norms
        candidates = np.flatnonzero(similarity > 0)
        if len(candidates) > n:
            least = np.partition(similarity[candidates], -n)[-n]
            candidates = candidates[similarity[candidates] >= least]
        found = candidates[np.argsort(-similarity[candidates], kind="stable")][:n]
        return found, similarity[found] / norm

    def _pairs(self, ids: NDArray[np.integer]) -> NDArray[np.int64]:
        """A number for each pair of adjacent ids, above all ids."""
        wide = ids.astype(np.int64)
        return self._base * (1 + wide[:-1]) + wide[1:]


class NeighborModel(TranslationModel):
    """p(y) = (1 - lambda) p_model(y) + lambda p_neighbors(y), with lambda = w max(0, 1 - d_1 / D).

    d_i is the mean squared difference between the readout's vector in this step and the i-th
    nearest key, D and w are `decoding.neighbors.distance` and `weight`. p_neighbors(y) is the sum
    of exp(-3 d_i / D) over the nearest keys whose value is y, divided by that over all nearest
    keys. So a step that is like none of the similar pairs is left to the model.

    Args:
        model: makes the keys, too, that are not stored.
        pairs: to look for similar pairs in, as ids. similar: finds their sources.
        datastore: of all pairs; None: the keys are made when they are needed.
        texts: the pairs in their order, and how often a user's memory has each.
    """

    def __init__(
        self,
        model: TranslationModel,
        pairs: Corpus,
        similar: SimilarSentences,
        options: NeighborsConfig,
        datastore: Datastore | None = None,
        texts: Counter[Pair] | None = None,
    ) -> None:
        self.model, self.threads = model, model.threads
        self.precision, self.lexicon = model.precision, model.lexicon
        self.pairs, self.similar, self.options = pairs, similar, options
        self.datastore, self.texts = datastore, texts or Counter()
        self._known = dict[int, NDArray[np.floating[Any]]]()  # keys of pairs

    def encode(self, sources: IdLists) -> tuple[MemoryWithNeighbors, Any]:
        found = [self.similar.rank(source, self.options.pairs)[0] for source in sources]
        datastore = self.datastore
        if datastore is None:
            pairs = np.unique(np.append(np.concatenate(found), 0))  # one at least
            datastore = self._datastore(pairs.tolist())
            found = [np.searchsorted(pairs, some) for some in found]
        rows = [datastore.rows(some) for some in found]
        n_keys = max(MAX_KEYS, *map(len, rows))
        padded = np.array([row + [-1] * (n_keys - len(row)) for row in rows])
        keys = datastore.keys[padded].astype(np.float64)
        squares = np.where(padded < 0, np.inf, np.square(keys).sum(2))
        memory, state = self.model.encode(sources)
        values = datastore.values[padded]
        return MemoryWithNeighbors(memory, keys, squares, values, datastore.projection), state

    def _datastore(self, pairs: Sequence[int]) -> Datastore:
        """Of some pairs. Their keys are remembered: similar sentences have similar pairs."""
        known = self._known  # another thread may replace it
        new = [pair for pair in pairs if pair not in known] or [0]  # one at least
        made = Datastore.of(self.model, self._selection(new))
        if sum(map(len, known.values())) > MAX_REMEMBERED:
            known = {pair: known[pair] for pair in pairs if pair in known}
        known = known | {pair: made.keys[made.rows([row])] for row, pair in enumerate(new)}
        self._known = known
        keys = np.concatenate([*(known[pair] for pair in pairs), made.keys[-1:]])
        return Datastore(self._selection(pairs).tgt, keys, made.projection)

    def _selection(self, pairs: Iterable[int]) -> Corpus:
        return self.pairs.selection([(pair, pair + 1) for pair in pairs])

    def step(self, ids: NDArray[np.int64], state: Any, memory: MemoryWithNeighbors) -> StepOutput:
        output = self.model.step(ids, state, memory.memory)
        vectors: NDArray[np.float32] = output.vectors.values
        projected = vectors if memory.projection is None else vectors @ memory.projection
        queries = projected.astype(np.float64).reshape(len(memory.keys), -1, projected.shape[1])
        products = queries @ memory.keys.swapaxes(1, 2)
        squares = np.square(queries).sum(2, keepdims=True) + memory.squares[:, None]
        distances = ((squares - 2 * products) / vectors.shape[1]).clip(min=0)  # [B, K, N]
        nearest = np.argpartition(distances, MAX_KEYS - 1, axis=2)[..., :MAX_KEYS]
        relative = np.take_along_axis(distances, nearest, 2) / self.options.distance
        closest = relative.min(2, keepdims=True).clip(max=1)  # 1 if there are no keys
        weight = self.options.weight * (1 - closest)  # [B, K, 1]
        shares = np.exp((closest - relative) / TEMPERATURE)
        # The sum is below 1 only where the weight is 0.
        probabilities = weight * shares / shares.sum(2, keepdims=True).clip(min=1)
        values = np.take_along_axis(memory.values[:, None], nearest, 2)
        is_same = values[..., :, None] == values[..., None, :]
        odds = (is_same @ probabilities[..., None])[..., 0] / (1 - weight)
        n_keys = values.shape[2]
        mixed = NeighborVectors(
            output.vectors,
            values.reshape(-1, n_keys),
            odds.reshape(-1, n_keys),
            1 - weight.reshape(-1, 1),
        )
        return replace(output, vectors=mixed)

    def log_probs(self, vectors: NeighborVectors) -> NDArray[np.floating[Any]]:
        """Those of the model, but for the words of the nearest keys, which get their share."""
        log_probs = self.model.log_probs(vectors.vectors)
        with np.errstate(divide="ignore"):
            shares = np.log(vectors.odds)
        words = np.logaddexp(np.take_along_axis(log_probs, vectors.ids, 1), shares)
        np.put_along_axis(log_probs, vectors.ids, words, 1)
        log_probs += np.log(vectors.rest)
        return log_probs

    def best(
        self, vectors: NeighborVectors, k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]]]:
        rows = np.arange(len(vectors.ids))
        chunks = (rows[start : start + CHUNK_ROWS] for start in rows[::CHUNK_ROWS])
        parts = [k_best(self.log_probs(vectors.select(chunk)), k) for chunk in chunks]
        ids, log_probs = (np.concatenate(part) for part in zip(*parts, strict=True))
        return ids, log_probs

    def with_terms(self, terms: Terms, weight: float) -> "NeighborModel | None":
        model = self.model.with_terms(terms, weight)
        if model is None:
            return None
        other = copy(self)
        other.model = model
        return other
