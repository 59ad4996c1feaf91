"""Nearest-neighbor translation: at each step, the model also looks at similar training pairs.

After Khandelwal et al. 2021 (arXiv 2010.00710), with a small datastore for each sentence: the
training pairs with the most similar sources (Dai et al. 2023, arXiv 2302.12188). Each target token
of these pairs is a value. Its key is the vector that the model's readout gives at that token, with
teacher forcing.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.schema import BatchConfig, Config
from nmt.config.section import key_of
from nmt.data.batches import plan_batches, read_batches
from nmt.data.corpus import Corpus, Sequences, encode_pairs
from nmt.data.reading import Pair
from nmt.data.tables import Dialect, find_dialect
from nmt.decoding.ensemble import Member
from nmt.errors import ConfigError, DataError
from nmt.extras.neighbors.keys import NeighborsConfig
from nmt.files import is_as_written, warn_if_changed, write_recorded
from nmt.lines import read_lines
from nmt.model.interface import StepOutput, TranslationModel
from nmt.model.output import Vectors
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_tokenizers, load_vocabularies

NEIGHBORS_FILE = "neighbors.tsv"
HEADER = "source\ttarget"
ADVICE = "write a source, a tab and a target in each line, in UTF-8"
MAX_BYTES = 1 << 30
# With a feature; more frequent features are not used: they say little and take the most time.
MAX_SENTENCES = 1 << 14
MAX_KEYS = 32  # nearest keys of a step; farther ones have hardly any weight
# Of the softmax over the nearest keys, as a share of `decoding.neighbors.distance`.
TEMPERATURE = 1 / 3
BATCH_CONFIG = BatchConfig(unit="tokens", size=2048)


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


def wrap(members: Sequence[Member], run: Path, config: Config) -> Sequence[Member]:
    """The members with similar pairs to look at, if `decoding.neighbors` is set.

    Raises:
        ConfigError: the run has no pairs.
        DataError: the pairs are damaged.
    """
    options, path = key_of(config.decoding, "neighbors", NeighborsConfig), run / NEIGHBORS_FILE
    if not options.pairs:
        return members
    if not path.exists():
        raise ConfigError(
            f"decoding.neighbors.pairs: {options.pairs} needs the training pairs in the run; "
            f"`nmt neighbors {run}` stores them"
        )
    vocabularies = load_vocabularies(run)
    pairs = encode_pairs(load_pairs(path), load_tokenizers(run, config), vocabularies)
    similar = SimilarSentences(pairs.src, len(vocabularies[0]))
    wrapped = []
    for member in members:
        assert isinstance(member.model, Seq2Seq)
        model = NeighborModel(member.trained, member.model, pairs, similar, options)
        wrapped.append(Member(member.trained, model))
    return wrapped


def files(run: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """The pairs of a run, and the function that reads them."""
    if (path := run / NEIGHBORS_FILE).exists():
        yield NEIGHBORS_FILE, partial(load_pairs, path)


@dataclass(frozen=True)
class NeighborMemory:
    """The memory of B sentences.

    Attributes:
        memory: of the model.
        keys: [B, N, R], the readout's vectors at the tokens of similar pairs; padded. In float64:
            of close vectors, the digits of float32 cancel in q^2 + k^2 - 2 q k.
        squares: [B, N], the mean squares of the keys; infinite on padding.
        values: [B, N], the ids of these tokens.
    """

    memory: Any
    keys: Tensor
    squares: Tensor
    values: Tensor

    def select(self, rows: Tensor) -> "NeighborMemory":
        """The memory of the sentences `rows` [R], in that order."""
        return NeighborMemory(
            self.memory.select(rows), self.keys[rows], self.squares[rows], self.values[rows]
        )


@dataclass(frozen=True)
class NeighborVectors:
    """The vectors of a step for N hypotheses.

    Attributes:
        vectors: of the model.
        ids: [N, k], the values of the nearest keys. probabilities: [N, k], lambda times theirs.
        weights: [N, 1], lambda.
    """

    vectors: Vectors
    ids: Tensor
    probabilities: Tensor
    weights: Tensor

    def select(self, rows: Tensor) -> "NeighborVectors":
        """Those of the hypotheses `rows` [N'], in that order."""
        return NeighborVectors(
            self.vectors.select(rows),
            self.ids[rows],
            self.probabilities[rows],
            self.weights[rows],
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
        sentence = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        is_pair = sentence[1:] == sentence[:-1]
        pairs = self._pairs(ids)[is_pair]
        features, sentence = (
            np.concatenate([ids.astype(np.int64), pairs]),
            np.concatenate([sentence, sentence[1:][is_pair]]),
        )
        order = np.lexsort((sentence, features))
        features, sentence = features[order], sentence[order]
        is_first = np.ones(len(features), np.bool_)  # in its sentence
        is_first[1:] = (features[1:] != features[:-1]) | (sentence[1:] != sentence[:-1])
        features, self._sentences = features[is_first], sentence[is_first]
        self._features, self._starts, counts = np.unique(
            features, return_index=True, return_counts=True
        )
        self._ends = self._starts + counts
        self._idf = np.log(len(sentences) / counts)
        self._is_used = counts <= MAX_SENTENCES
        squares = np.bincount(self._sentences, np.repeat(self._idf**2, counts), len(sentences))
        self._norms = np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))

    def find(self, sentence: Sequence[int], n: int) -> NDArray[np.int64]:
        """The indices of at most n sentences with a feature of `sentence`, the most similar first;
        of equals, the earlier first.
        """
        ids = np.asarray(sentence, np.int64)
        wanted = np.unique(np.concatenate([ids, self._pairs(ids)]))
        _, rows, _ = np.intersect1d(self._features, wanted, assume_unique=True, return_indices=True)
        rows = rows[self._is_used[rows]]
        similarity = np.zeros(len(self._norms))
        for row in rows:
            similarity[self._sentences[self._starts[row] : self._ends[row]]] += self._idf[row] ** 2
        similarity /= self._norms
        n_found = min(n, int(np.count_nonzero(similarity)))
        if not n_found:
            return np.zeros(0, np.int64)
        least = np.partition(similarity, -n_found)[-n_found]
        candidates = np.flatnonzero(similarity >= least)
        return candidates[np.argsort(-similarity[candidates], kind="stable")][:n_found]

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
        model: the trained model, which makes the keys. fast_model: its form for search.
        pairs: to look for similar pairs in, as ids. similar: finds their sources.
    """

    def __init__(
        self,
        model: Seq2Seq,
        fast_model: Seq2Seq,
        pairs: Corpus,
        similar: SimilarSentences,
        options: NeighborsConfig,
    ) -> None:
        super().__init__()
        self.model, self.fast_model = model, fast_model
        self.pairs, self.similar, self.options = pairs, similar, options
        self.key_size = model.decoder.readout.output_size

    @property
    def device(self) -> torch.device:
        return self.model.device

    def encode(self, src: Tensor, src_lengths: Tensor) -> NeighborMemory:
        sentences = [
            row[: length - 1]
            for row, length in zip(src.tolist(), src_lengths.tolist(), strict=True)
        ]
        found = [self.similar.find(sentence, self.options.pairs) for sentence in sentences]
        pairs = np.unique(np.concatenate(found))
        keys, values, owners = self._datastore(pairs)
        # Of the datastore, for each sentence.
        rows = [np.flatnonzero(np.isin(owners, some)) for some in found]
        padded = torch.full((len(rows), max(1, *map(len, rows))), -1)
        for places, some in zip(padded, rows, strict=True):
            places[: len(some)] = torch.from_numpy(some)
        padded = padded.to(src.device)
        keys = keys.to(torch.float32 if src.device.type == "mps" else torch.float64)  # MPS has none
        squares = keys.square().mean(1)[padded].masked_fill(padded < 0, float("inf"))
        return NeighborMemory(
            self.fast_model.encode(src, src_lengths), keys[padded], squares, values[padded]
        )

    def _datastore(self, pairs: NDArray[np.int64]) -> tuple[Tensor, Tensor, NDArray[np.int64]]:
        """Keys [n, R] and values [n] of some pairs, and the pair of each; the first row pads."""
        src_lengths, tgt_lengths = self.pairs.src.lengths[pairs], self.pairs.tgt.lengths[pairs]
        plan = (
            plan_batches(src_lengths, tgt_lengths, BATCH_CONFIG, key=(0, 0)) if len(pairs) else []
        )
        padding = torch.zeros(1, self.key_size, dtype=self.model.src_embedding.weight.dtype)
        keys, values, owners = [padding], [torch.zeros(1, dtype=torch.long)], [np.full(1, -1)]
        for rows in plan:
            (batch,) = read_batches(self.pairs, [pairs[rows]])
            decoded = self.model(
                batch.src.to(self.device), batch.src_lengths, batch.tgt_in.to(self.device)
            )
            keys.append(decoded.vectors.flatten(0, 1)[batch.token_positions.to(self.device)].cpu())
            values.append(batch.tgt_out.flatten()[batch.token_positions])
            owners.append(np.repeat(pairs[rows], tgt_lengths[rows] + 1))
        return (
            torch.cat(keys).to(self.device),
            torch.cat(values).to(self.device),
            np.concatenate(owners),
        )

    def start(self, memory: NeighborMemory) -> Any:
        return self.fast_model.start(memory.memory)

    def step(self, ids: Tensor, state: Any, memory: NeighborMemory) -> StepOutput:
        output = self.fast_model.step(ids, state, memory.memory)
        vectors: Tensor = output.vector.values
        queries = vectors.unflatten(0, (len(memory.keys), -1)).to(memory.keys.dtype)  # [B, K, R]
        products = queries @ memory.keys.transpose(1, 2) / self.key_size
        squares = queries.square().mean(2, keepdim=True) + memory.squares.unsqueeze(1)
        distances = squares - 2 * products  # [B, K, N]
        nearest = distances.clamp(min=0).topk(min(MAX_KEYS, distances.shape[2]), largest=False)
        relative = (nearest.values / self.options.distance).to(vectors.dtype)
        closeness = (1 - relative[..., :1]).clamp(min=0)  # 0 if there are no keys
        weight = self.options.weight * closeness  # [B, K, 1]
        probabilities = torch.where(weight > 0, weight * (-relative / TEMPERATURE).softmax(2), 0)
        values = memory.values.unsqueeze(1).expand_as(distances).gather(2, nearest.indices)
        vector = NeighborVectors(
            output.vector, values.flatten(0, 1), probabilities.flatten(0, 1), weight.flatten(0, 1)
        )
        return replace(output, vector=vector)

    def compute_logits(self, vectors: NeighborVectors) -> Tensor:
        """Log-probabilities [N, V]."""
        log_probs = self.fast_model.output.log_probs(*vectors.vectors)
        probabilities = (1 - vectors.weights) * log_probs.exp()
        return torch.log(probabilities.scatter_add_(1, vectors.ids, vectors.probabilities))
