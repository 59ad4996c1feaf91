"""The steps of `nmt prepare`: read and clean, split, learn subwords, tokenize and count, write ids."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nmt.bars import progress_bar
from nmt.config.schema import SUBWORD_KINDS, Config, SourceConfig
from nmt.data import encoding, filtering, source_checks, splitting
from nmt.data.corpus import SPLITS
from nmt.data.encoding import TokenizedSide, TokenizerPlan, TokenTable
from nmt.data.manifest import load_manifest
from nmt.data.reading import Pair, Pairs, read_pairs
from nmt.data.sources import open_pairs
from nmt.data.workers import Workers
from nmt.errors import DataError
from nmt.files import check_content, write_lines
from nmt.metrics.scores import score
from nmt.text.normalization import REPAIRS
from nmt.text.tokenizers import SIDES, Side, model_path
from nmt.text.vocabulary import SPECIALS, Vocabulary

if TYPE_CHECKING:
    from tqdm import tqdm

MAX_SUBWORD_PAIRS = 200_000  # to learn subwords from, which bounds time and memory

# Settings that must be those of `vocabulary.like`, or its vocabularies do not fit. The direction may also be the opposite one.
LIKE_SETTINGS = ("data.direction", "tokenizer.kind", "tokenizer.lowercase", "vocabulary.joint")

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Job:
    """A preparation. paths: the input file of each role (see `Input`). folder: a new one to fill. show_bars: of progress."""

    config: Config
    paths: Mapping[str, Path]
    folder: Path
    workers: Workers
    show_bars: bool

    @property
    def scratch(self) -> Path:
        """A folder for temporary files."""
        return self.folder / "scratch"

    @contextmanager
    def bar(self, label: str, total: int | None = None) -> "Iterator[tqdm[Any]]":
        with progress_bar(total=total, desc=f"{label:<9}", unit=" pairs", unit_scale=True, disable=not self.show_bars) as bar:
            yield bar


@dataclass(frozen=True)
class Split:
    """Some pairs of a source, in the order of `positions`."""

    pairs: Pairs
    positions: Positions

    def __len__(self) -> int:
        return len(self.positions)

    def stream(self) -> Iterator[Pair]:
        """The pairs in order. If the positions do not ascend, all pairs are read into memory first."""
        if np.all(np.diff(self.positions) > 0):
            yield from self.pairs.stream(self.positions)
        else:
            rows = list(self.pairs.stream(np.sort(self.positions)))
            for rank in np.argsort(np.argsort(self.positions)):
                yield rows[rank]


def run_pipeline(job: Job) -> dict[str, Any]:
    """Write all files except the manifest into `job.folder`, and return the figures for the manifest.

    Raises:
        DataError: the input cannot be used.
    """
    config = job.config
    if config.vocabulary.like is not None:
        _check_like(config, config.vocabulary.like)
    job.scratch.mkdir()
    pairs, held_out = _read_sources(job)
    dropped = pairs.tally.dropped.copy()
    kept = _keep_pairs(pairs, config, dropped)
    if held_out:
        splits = {
            "train": Split(pairs, kept),
            **{name: Split(whole_set, np.arange(len(whole_set))) for name, whole_set in held_out.items()},
        }
    else:
        splits = _split_pairs(pairs, kept, config)
    for name in ("dev", "test"):
        for index, side in enumerate(SIDES):
            write_lines(job.folder / f"{name}.{side}.txt", (pair[index] for pair in splits[name].stream()))
    if config.tokenizer.kind in SUBWORD_KINDS:
        if config.vocabulary.like is None:
            _learn_subwords(job, splits["train"])
        else:
            _copy_subwords(job, config.vocabulary.like)
    tokenizers = encoding.plan_tokenizers(config, job.folder)
    token_counts, vocabulary = _encode(job, splits, tokenizers)
    signatures, ceiling = _tokenizer_ceiling(job, splits["dev"], tokenizers)
    whole, src, tgt = pairs.fingerprints[kept].T
    sources = (pairs, *held_out.values())
    shutil.rmtree(job.scratch)
    return {
        "counts": {
            "read": pairs.tally.read,
            "kept": len(kept),
            "dropped": {reason: dropped[reason] for reason in filtering.DROP_REASONS},
            "repaired": {repair: sum(source.tally.repaired[repair] for source in sources) for repair in REPAIRS},
            "unreadable_lines": pairs.tally.lines,
        },
        "splits": {name: {"pairs": len(split), **token_counts[name]} for name, split in splits.items()},
        "overlap": _count_overlap(splits),
        "naive_leak": None if held_out else splitting.naive_leak(whole, src, tgt, config.data.split),
        "vocabulary": vocabulary,
        "tokenizers": signatures,
        "ceiling": ceiling,
    }


def _read_sources(job: Job) -> tuple[Pairs, dict[str, Pairs]]:
    """The pairs of the source, and those of the dev and test sets if the configuration names files for them."""
    data = job.config.data
    held_out = {name: source for name, source in (("dev", data.dev), ("test", data.test)) if source is not None}
    names: dict[str, str] = {}
    with job.bar("read") as bar:

        def read(role: str, source: SourceConfig) -> Pairs:
            pair_source = open_pairs(source, job.paths.get(role), data.src_language, data.tgt_language)
            names[role] = pair_source.name
            cleaning, path = data.cleaning if role == "source" else None, job.scratch / f"{role}.tsv"
            languages, target_first = (data.src_language, data.tgt_language), data.splits_as_opposite
            return read_pairs(pair_source, cleaning, job.workers, path, bar.update, languages=languages, target_first=target_first)

        pairs, sets = read("source", data.source), {name: read(name, source) for name, source in held_out.items()}
    if sets:
        tables = {name: each.fingerprints for name, each in {"source": pairs, **sets}.items()}
        source_checks.check_held_out(names, tables)
    return pairs, sets


def _keep_pairs(pairs: Pairs, config: Config, dropped: dict[str, int]) -> Positions:
    """The positions of the pairs without duplicates, at most `data.max_pairs` of them. Counts the others in `dropped`."""
    fingerprints = pairs.pair_fingerprints
    first = splitting.first_occurrences(fingerprints)
    kept = first
    if config.data.max_pairs is not None:
        kept = first[splitting.sample_pairs(fingerprints[first], config.data.max_pairs, config.data.split.seed, "max_pairs")]
    dropped[filtering.DUPLICATE] = len(pairs) - len(first)
    dropped[filtering.BEYOND_MAX_PAIRS] = len(first) - len(kept)
    return kept


def _split_pairs(pairs: Pairs, kept: Positions, config: Config) -> dict[str, Split]:
    whole, src, tgt = pairs.fingerprints[kept].T
    assigned = splitting.assign_splits(whole, src, tgt, config.data.split)
    splits = {"train": Split(pairs, kept[assigned == splitting.TRAIN])}
    for name, split in (("dev", splitting.DEV), ("test", splitting.TEST)):
        positions = kept[assigned == split]
        # Files are often sorted by length; in random order the first N pairs are a fair sample.
        order = np.argsort(splitting.random_keys(pairs.pair_fingerprints[positions], config.data.split.seed, name), kind="stable")
        splits[name] = Split(pairs, positions[order])
    return splits


def _check_like(config: Config, like: Path) -> None:
    """Raises: DataError if `like` holds no vocabularies, or they were made with other settings."""
    like_config, this_config = load_manifest(like)["config"], config.to_dict()
    for section, key in (name.split(".") for name in LIKE_SETTINGS):
        expected, actual = like_config[section].get(key), this_config[section][key]
        is_opposite = key == "direction" and expected == config.data.opposite_direction
        if actual != expected and not is_opposite:
            raise DataError(
                f"vocabulary.like: {like} was prepared with {section}.{key} {expected}, but this configuration has {actual}; "
                f"set it to {expected}"
            )


def _sides_of_like(config: Config, like: Path) -> dict[Side, Side]:
    """The side of `like` that has the language of each side."""
    has_same_direction = load_manifest(like)["config"]["data"]["direction"] == config.data.direction
    return {"src": "src", "tgt": "tgt"} if has_same_direction else {"src": "tgt", "tgt": "src"}


def _copy_subwords(job: Job, like: Path) -> None:
    """Raises: DataError if a subword model is missing or damaged."""
    for side, like_side in _sides_of_like(job.config, like).items():
        try:
            check_content(model_path(like, like_side), "set vocabulary.like to an intact run or prepared folder")
            shutil.copyfile(model_path(like, like_side), model_path(job.folder, side))
        except FileNotFoundError:
            raise DataError(
                f"{model_path(like, like_side)}: no such file; set vocabulary.like to a complete run or prepared folder"
            ) from None


def _learn_subwords(job: Job, train: Split) -> None:
    config = job.config
    fingerprints = train.pairs.pair_fingerprints[train.positions]
    sample_indices = splitting.sample_pairs(fingerprints, MAX_SUBWORD_PAIRS, config.data.split.seed, "subwords")
    sample = Split(train.pairs, train.positions[sample_indices])
    texts: dict[Side, Path] = {side: job.scratch / f"subwords.{side}.txt" for side in SIDES}
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
    """Tokenize, count tokens, write vocabularies and ids.

    Returns:
        Token counts by split and side; the size and coverage of each side's vocabulary.
    """
    tables = {side: TokenTable() for side in SIDES}
    tokenized: dict[str, dict[Side, TokenizedSide]] = {}
    with job.bar("tokenize", sum(map(len, splits.values()))) as bar:
        for name in SPLITS:
            tokenized[name] = {side: TokenizedSide(job.scratch / f"{name}.{side}.numbers") for side in SIDES}
            pairs, count = splits[name].stream(), name == "train"
            encoding.tokenize(pairs, tokenized[name], tables, tokenizers, job.workers, bar.update, count=count)
    like = job.config.vocabulary.like
    if like is None:
        vocabularies = encoding.build_vocabularies(job.config, tables)
    else:
        sides = _sides_of_like(job.config, like)
        vocabularies = {side: Vocabulary.load(like / f"{sides[side]}.vocab.txt") for side in SIDES}
    figures: dict[str, dict[str, Any]] = {}
    for side in SIDES:
        vocabularies[side].save(job.folder / f"{side}.vocab.txt")
        ids = tables[side].ids(vocabularies[side])
        known = {name: encoding.write_ids(tokenized[name][side], ids, job.folder / f"{name}.{side}") for name in SPLITS}
        figures[side] = {"size": len(vocabularies[side]), "coverage": known["dev"] / max(1, tokenized["dev"][side].n_tokens)}
        source_checks.check_vocabulary(side, len(vocabularies[side]) - len(SPECIALS), figures[side]["coverage"])
    return {
        name: {side: _token_counts(sentences) for side, sentences in sides.items()} for name, sides in tokenized.items()
    }, figures


def _token_counts(sentences: TokenizedSide) -> dict[str, float]:
    n_sentences = sum(map(len, sentences.lengths))
    return {
        "tokens": sentences.n_tokens,
        "mean": round(sentences.n_tokens / max(1, n_sentences), 2),
        "longest": sentences.longest,
    }


def _count_overlap(splits: dict[str, Split]) -> dict[str, dict[str, int]]:
    """The number of different source and target sentences that each two splits share."""
    fingerprints = {name: split.pairs.fingerprints[split.positions] for name, split in splits.items()}
    return {
        f"{first}-{second}": {
            side: len(np.intersect1d(fingerprints[first][:, column], fingerprints[second][:, column]))
            for column, side in enumerate(SIDES, start=1)
        }
        for first, second in combinations(splits, 2)
    }


def _tokenizer_ceiling(job: Job, dev: Split, tokenizers: dict[Side, TokenizerPlan]) -> tuple[dict[Side, str], dict[str, Any]]:
    """The signatures of the tokenizers, and the BLEU of `join(split(reference))`: the best score a model can reach on dev."""
    references = [tgt for _, tgt in dev.stream()]
    texts: dict[Side, list[str]] = {"src": [], "tgt": references}
    futures = {side: job.workers.submit(encoding.detokenize, tokenizers[side], texts[side]) for side in SIDES}
    results = {side: future.result() for side, future in futures.items()}
    outputs = results["tgt"][1]
    (cased,) = score(outputs, [references], ["BLEU"])
    (caseless,) = score(outputs, [references], ["BLEU"], lowercase=True)
    ceiling = {"score": round(cased.value, 2), "signature": cased.signature, "score_without_case": round(caseless.value, 2)}
    return {side: signature for side, (signature, _) in results.items()}, ceiling
