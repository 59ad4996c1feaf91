"""The passes of a preparation, one after the other: read and clean, split, tokenize and count, write ids."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from nmt.config.schema import Config, SourceConfig
from nmt.data import encoding, filtering, splitting
from nmt.data.corpus import SPLITS
from nmt.data.encoding import TokenizedSide, TokenizerPlan, TokenTable
from nmt.data.manifest import load_manifest
from nmt.data.reading import Pair, Pairs, read_pairs
from nmt.data.sources import open_source
from nmt.data.workers import Workers
from nmt.errors import DataError
from nmt.files import write_lines
from nmt.text.normalization import REPAIRS
from nmt.text.tokenizers import SIDES, SUBWORD_KINDS, Side, model_path
from nmt.text.vocabulary import Vocabulary

SUBWORD_SENTENCES = 200_000  # subword models are learned from so many pairs at most, to bound time and memory

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Job:
    """What a preparation works with. `paths` says for each role where the file is; `folder` is the one that is being built."""

    config: Config
    paths: Mapping[str, Path]
    folder: Path
    workers: Workers
    progress: bool

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    @contextmanager
    def bar(self, label: str, total: int | None = None) -> "Iterator[tqdm[Any]]":
        with tqdm(total=total, desc=f"{label:<9}", unit=" pairs", unit_scale=True, disable=not self.progress) as bar:
            yield bar


@dataclass(frozen=True)
class Split:
    """Some of the pairs of a source, in the order of `positions`."""

    pairs: Pairs
    positions: Positions

    def __len__(self) -> int:
        return len(self.positions)

    def stream(self) -> Iterator[Pair]:
        """In order; for a split whose positions do not ascend, all of it is in memory for a while."""
        if np.all(np.diff(self.positions) > 0):
            yield from self.pairs.stream(self.positions)
        else:
            rows = list(self.pairs.stream(np.sort(self.positions)))
            for rank in np.argsort(np.argsort(self.positions)):
                yield rows[rank]


def prepare(job: Job) -> dict[str, Any]:
    """Write all files but the manifest into `job.folder`, and return what the manifest says about them."""
    config = job.config
    if config.vocabulary.like is not None:
        _check_like(config, config.vocabulary.like)
    job.scratch.mkdir()
    pairs, given = _read(job)
    dropped = pairs.tally.dropped.copy()
    kept = _select(pairs, config, dropped)
    splits = _given_splits(pairs, kept, given) if given else _cut_splits(pairs, kept, config)
    for name in ("dev", "test"):
        for index, side in enumerate(SIDES):
            write_lines(job.folder / f"{name}.{side}.txt", (pair[index] for pair in splits[name].stream()))
    tokenizers = encoding.plans(config, job.folder)
    if config.tokenizer.kind in SUBWORD_KINDS:
        if config.vocabulary.like is None:
            _learn_subwords(job, splits["train"])
        else:
            _copy_subwords(job, config.vocabulary.like)
    tokenized, vocabulary = _encode(job, splits, tokenizers)
    signatures, ceiling = _ceiling(job, splits["dev"], tokenizers)
    whole, src, tgt = pairs.fingerprints[kept].T
    shutil.rmtree(job.scratch)
    return {
        "counts": {
            "read": pairs.tally.read,
            "kept": len(kept),
            "dropped": {reason: dropped[reason] for reason in filtering.DROP_REASONS},
            "repaired": {kind: sum(read.tally.repaired[kind] for read in (pairs, *given.values())) for kind in REPAIRS},
            "unreadable_lines": pairs.tally.lines,
        },
        "splits": {name: {"pairs": len(split), **tokenized[name]} for name, split in splits.items()},
        "overlap": _overlap(splits),
        "naive_leak": None if given else splitting.naive_leak(whole, src, tgt, config.data.split),
        "vocabulary": vocabulary,
        "tokenizers": signatures,
        "ceiling": ceiling,
    }


def _read(job: Job) -> tuple[Pairs, dict[str, Pairs]]:
    data = job.config.data
    given = {name: source for name, source in (("dev", data.dev), ("test", data.test)) if source is not None}
    with job.bar("read") as bar:

        def read(role: str, source: SourceConfig) -> Pairs:
            opened = open_source(source, job.paths.get(role), data.src_language, data.tgt_language)
            rules = data.cleaning if role == "source" else None
            return read_pairs(opened, rules, job.workers, job.scratch / f"{role}.tsv", bar.update)

        return read("source", data.source), {name: read(name, source) for name, source in given.items()}


def _select(pairs: Pairs, config: Config, dropped: dict[str, int]) -> Positions:
    """Positions of the pairs that stay when duplicates, and what is beyond `max_pairs`, are gone."""
    first = np.flatnonzero(splitting.first_occurrences(pairs.whole))
    kept = first
    if config.data.max_pairs is not None:
        kept = first[splitting.draw(pairs.whole[first], config.data.max_pairs, config.data.split.seed, "max_pairs")]
    dropped[filtering.DUPLICATE] = len(pairs) - len(first)
    dropped[filtering.BEYOND_MAX_PAIRS] = len(first) - len(kept)
    return kept


def _given_splits(pairs: Pairs, kept: Positions, given: dict[str, Pairs]) -> dict[str, Split]:
    return {"train": Split(pairs, kept), **{name: Split(read, np.arange(len(read))) for name, read in given.items()}}


def _cut_splits(pairs: Pairs, kept: Positions, config: Config) -> dict[str, Split]:
    whole, src, tgt = pairs.fingerprints[kept].T
    places = splitting.assign(whole, src, tgt, config.data.split)
    splits = {"train": Split(pairs, kept[places == splitting.TRAIN])}
    for name, place in (("dev", splitting.DEV), ("test", splitting.TEST)):
        chosen = kept[places == place]
        # In random order, so that the first so many are a fair sample; the files are often sorted by length.
        order = np.argsort(splitting.shuffled(pairs.whole[chosen], config.data.split.seed, name), kind="stable")
        splits[name] = Split(pairs, chosen[order])
    return splits


def _check_like(config: Config, like: Path) -> None:
    """Raises: DataError if `like` holds no vocabularies, or some that were made with other settings."""
    there = load_manifest(like)["config"]
    here = config.to_dict()
    for section, keys in {"data": ("direction",), "tokenizer": ("kind", "lowercase"), "vocabulary": ("joint",)}.items():
        for key in keys:
            if there[section].get(key) != here[section][key]:
                raise DataError(
                    f"vocabulary.like: {like} has {section}.{key} {there[section].get(key)}, and this configuration "
                    f"{here[section][key]}; set it to the same"
                )


def _copy_subwords(job: Job, like: Path) -> None:
    """Raises: DataError if one is missing."""
    for side in SIDES:
        try:
            shutil.copyfile(model_path(like, side), model_path(job.folder, side))
        except FileNotFoundError:
            raise DataError(f"{model_path(like, side)}: no such file; vocabulary.like names no whole run or folder") from None


def _load_vocabularies(like: Path) -> dict[Side, Vocabulary]:
    return {side: Vocabulary.load(like / f"{side}.vocab.txt") for side in SIDES}


def _learn_subwords(job: Job, train: Split) -> None:
    config = job.config
    drawn = splitting.draw(train.pairs.whole[train.positions], SUBWORD_SENTENCES, config.data.split.seed, "subwords")
    texts: dict[Side, Path] = {side: job.scratch / f"subwords.{side}.txt" for side in SIDES}
    sample = Split(train.pairs, train.positions[drawn])
    for index, side in enumerate(SIDES):
        write_lines(texts[side], (pair[index] for pair in sample.stream()))
    with job.bar("subwords", len(sample)) as bar:
        models = encoding.learn_subwords(config.tokenizer, config.vocabulary.joint, texts, job.workers)
        bar.update(len(sample))
    for side, model in models.items():
        model_path(job.folder, side).write_bytes(model)


def _encode(
    job: Job, splits: dict[str, Split], tokenizers: dict[Side, TokenizerPlan]
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Tokenize, count, and write vocabularies and ids. Returns token counts by split and side, and the vocabularies' figures."""
    tables = {side: TokenTable() for side in SIDES}
    tokenized: dict[str, dict[Side, TokenizedSide]] = {}
    with job.bar("tokenize", sum(map(len, splits.values()))) as bar:
        for name in SPLITS:
            tokenized[name] = {side: TokenizedSide(job.scratch / f"{name}.{side}.numbers") for side in SIDES}
            encoding.tokenize(splits[name].stream(), name == "train", tokenized[name], tables, tokenizers, job.workers, bar.update)
    like = job.config.vocabulary.like
    vocabularies = encoding.build_vocabularies(job.config, tables) if like is None else _load_vocabularies(like)
    figures: dict[str, dict[str, Any]] = {}
    for side in SIDES:
        vocabularies[side].save(job.folder / f"{side}.vocab.txt")
        ids = tables[side].ids(vocabularies[side])
        known = {name: encoding.write_ids(tokenized[name][side], ids, job.folder / f"{name}.{side}") for name in SPLITS}
        figures[side] = {"size": len(vocabularies[side]), "coverage": known["dev"] / max(1, tokenized["dev"][side].n_tokens)}
    return {name: {side: _lengths(sentences) for side, sentences in sides.items()} for name, sides in tokenized.items()}, figures


def _lengths(sentences: TokenizedSide) -> dict[str, float]:
    count = sum(map(len, sentences.lengths))
    return {
        "tokens": sentences.n_tokens,
        "mean": round(sentences.n_tokens / max(1, count), 2),
        "longest": sentences.longest,
    }


def _overlap(splits: dict[str, Split]) -> dict[str, dict[str, int]]:
    """How many different source and target sentences each two of the splits share."""
    keys = {name: (split.pairs.src[split.positions], split.pairs.tgt[split.positions]) for name, split in splits.items()}
    return {
        f"{one}-{other}": {side: splitting.shared(keys[one][index], keys[other][index]) for index, side in enumerate(SIDES)}
        for one, other in combinations(keys, 2)
    }


def _ceiling(job: Job, dev: Split, tokenizers: dict[Side, TokenizerPlan]) -> tuple[dict[Side, str], dict[str, Any]]:
    """The tokenizers' signatures, and the BLEU that a model would get if it gave every token of the references."""
    from sacrebleu.metrics.bleu import BLEU

    references = [tgt for _, tgt in dev.stream()]
    texts: dict[Side, list[str]] = {"src": [], "tgt": references}
    running = {side: job.workers.submit(encoding.detokenize, tokenizers[side], texts[side]) for side in SIDES}
    finished = {side: future.result() for side, future in running.items()}
    metric, caseless = BLEU(force=True), BLEU(force=True, lowercase=True)
    score, score_caseless = (bleu.corpus_score(finished["tgt"][1], [references]).score for bleu in (metric, caseless))
    signatures = {side: signature for side, (signature, _) in finished.items()}
    ceiling = {"score": round(score, 2), "signature": str(metric.get_signature()), "score_without_case": round(score_caseless, 2)}
    return signatures, ceiling
