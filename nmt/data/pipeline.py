"""The steps of `nmt prepare`: read and clean, split, learn subwords, tokenize and count, write
ids.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt.bars import progress_bar
from nmt.config.parts import TOKENIZERS
from nmt.config.schema import CleaningConfig, Config, SourceConfig
from nmt.data import checks, encoding, mixing, splitting
from nmt.data.corpus import SPLITS
from nmt.data.encoding import TokenizedSide, TokenizerPlan, TokenTable
from nmt.data.formats import Files, open_source
from nmt.data.manifest import Counts, Figures, load_manifest
from nmt.data.mixing import Source, Split
from nmt.data.reading import (
    BEYOND_MAX_PAIRS,
    DROP_REASONS,
    DUPLICATE,
    MAX_LISTED,
    Pair,
    Pairs,
    PairsWriter,
    read_pairs,
)
from nmt.data.splitting import Mask
from nmt.data.workers import Workers
from nmt.errors import DataError
from nmt.files import check_content
from nmt.lines import write_lines
from nmt.text.normalization import REPAIRS
from nmt.text.tokenizers import SIDES, Side, model_path
from nmt.text.vocabulary import SPECIALS, Vocabulary

if TYPE_CHECKING:
    from tqdm import tqdm

MAX_SUBWORD_PAIRS = 200_000  # to learn subwords from, which bounds time and memory
SPLIT_STEPS = 4
MAX_CEILING_PAIRS = 20_000  # to measure the tokenizer's ceiling on

# Settings that must be those of `vocabulary.like`, or its vocabularies do not fit. The direction
# may also be the opposite one.
LIKE_SETTINGS = ("data.direction", "tokenizer.kind", "tokenizer.lowercase", "vocabulary.joint")


@dataclass(frozen=True)
class Job:
    """A preparation.

    Attributes:
        files: of each source by its key.
        folder: a new one to fill. show_bars: of progress.
        score: scores outputs with references, for the ceiling of the tokenizer.
    """

    config: Config
    files: Mapping[str, Files]
    folder: Path
    workers: Workers
    show_bars: bool
    score: Callable[[list[str], list[str]], dict[str, Any]]

    @property
    def scratch(self) -> Path:
        """A folder for temporary files."""
        return self.folder / "scratch"

    @contextmanager
    def bar(self, label: str, total: int, unit: str = " pairs") -> "Iterator[tqdm[Any]]":
        with progress_bar(
            total=total, desc=f"{label:<9}", unit=unit, unit_scale=True, disable=not self.show_bars
        ) as bar:
            yield bar


def run_pipeline(job: Job) -> Figures:
    """Write all files except the manifest into `job.folder`. Raises: DataError if the input cannot
    be used.
    """
    config, like = job.config, job.config.vocabulary.like
    if like is not None:
        _check_like(config, like)
    job.scratch.mkdir()
    pairs, sources, held_out = _read_sources(job)
    dropped = sum((source.tally.dropped for source in sources), Counter[str]())
    naive_leak = None
    with job.bar("split", SPLIT_STEPS, " steps") as bar:
        is_kept = _keep_pairs(pairs, config, dropped)
        bar.update()
        if held_out:
            splits = {"train": Split(pairs, is_kept, pairs, is_kept)}
            splits |= {name: Split(each.pairs, None, each.pairs) for name, each in held_out.items()}
            bar.update()
        else:
            splits = _split_pairs(job, pairs, is_kept, sources)
            bar.update()
            keys = (pairs.fingerprints(side, is_kept) for side in SIDES)
            naive_leak = splitting.naive_leak(
                pairs.fingerprints("pair", is_kept), keys, config.data.split
            )
        bar.update()
        overlap = {
            f"{one}-{other}": {side: _count_shared(splits, one, other, side) for side in SIDES}
            for one, other in combinations(splits, 2)
        }
        splits["train"] = mixing.apply_shares(splits["train"], sources, config.data)
        bar.update()
    for name in ("dev", "test"):
        _write_texts(splits[name].stream(), job.folder, name)
    if TOKENIZERS[config.tokenizer.kind].trait("learned"):
        if like is None:
            _learn_tokenizers(job, splits["train"])
        else:
            _copy_models(job, like)
    tokenizers = encoding.plan_tokenizers(config, job.folder)
    token_counts, vocabulary = _encode(job, splits, tokenizers)
    signatures, ceiling = _tokenizer_ceiling(job, splits["dev"], tokenizers)
    shutil.rmtree(job.scratch)
    repaired = Counter[str]()
    for source in (*sources, *held_out.values()):
        repaired += source.tally.repaired
    has_names = config.data.sources is not None
    counts = Counts(
        sum(source.tally.read for source in sources),
        int(np.count_nonzero(is_kept)),
        {reason: dropped[reason] for reason in DROP_REASONS},
        {repair: repaired[repair] for repair in REPAIRS},
        sources[0].tally.lines if len(sources) == 1 else _join_lines(sources),
        _count_by_source(sources, splits, is_kept) if has_names else None,
    )
    sizes = {name: {"pairs": len(split), **token_counts[name]} for name, split in splits.items()}
    return Figures(counts, sizes, overlap, naive_leak, vocabulary, signatures, ceiling)


def _read_sources(job: Job) -> tuple[Pairs, list[Source], dict[str, Source]]:
    """All training pairs; their sources, in the same order; and the dev and test sets with files of
    their own.
    """
    data = job.config.data
    languages = (data.src_language, data.tgt_language)
    sources, held_out = list[Source](), dict[str, Source]()
    paths = {
        key: [path for paths in files.values() for path in paths]
        for key, files in job.files.items()
    }
    n_bytes = sum(path.stat().st_size for path in chain.from_iterable(paths.values()))
    with job.bar("read", n_bytes, "B") as bar:

        def read(
            key: str, config: SourceConfig, cleaning: CleaningConfig | None, output: PairsWriter
        ) -> Source:
            start = output.count
            tally = read_pairs(
                open_source(config, job.files[key], languages),
                cleaning,
                job.workers,
                output,
                bar.update,
                languages=languages,
                target_first=data.splits_as_opposite,
            )
            name = key.removeprefix("sources.")
            return Source(name, output.pairs(), slice(start, output.count), tally)

        with PairsWriter(job.scratch / "source.tsv") as output:
            for key, config in data.training_sources.items():
                sources.append(read(key, config, data.cleaning, output))
        pairs = output.pairs()
        for name, source in {"dev": data.dev, "test": data.test}.items():
            if source is not None:
                with PairsWriter(job.scratch / f"{name}.tsv") as output:
                    held_out[name] = read(name, source, None, output)
    if held_out:
        names = {name: ", ".join(map(str, paths[name])) for name in held_out}
        sets = {name: source.pairs.fingerprints for name, source in held_out.items()}
        checks.check_held_out(names, {"source": pairs.fingerprints, **sets})
    return pairs, sources, held_out


def _join_lines(sources: Sequence[Source]) -> dict[str, list[str]]:
    """The first unreadable lines of several sources, with the names of the sources."""
    reasons = dict.fromkeys(reason for source in sources for reason in source.tally.lines)
    return {
        reason: [
            f"{source.name}:{line}"
            for source in sources
            for line in source.tally.lines.get(reason, [])
        ][:MAX_LISTED]
        for reason in reasons
    }


def _count_by_source(
    sources: Sequence[Source], splits: Mapping[str, Split], is_kept: Mask
) -> dict[str, dict[str, int]]:
    """How many pairs of each source there are, and where. training: with the copies that its share
    makes.
    """
    copies = splits["train"].copies

    def count(mask: Mask | None, part: slice) -> int:
        return 0 if mask is None else int(np.count_nonzero(mask[part]))

    return {
        source.name: {
            "read": source.tally.read,
            "kept": count(is_kept, source.part),
            "dev": count(splits["dev"].is_member, source.part),
            "test": count(splits["test"].is_member, source.part),
            "train_pairs": count(splits["train"].is_member, source.part),
            "training": 0 if copies is None else int(copies[source.part].sum(dtype=np.int64)),
        }
        for source in sources
    }


def _keep_pairs(pairs: Pairs, config: Config, dropped: dict[str, int]) -> Mask:
    """Which pairs are kept: none twice, at most `data.max_pairs`. Counts the others in
    `dropped`.
    """
    fingerprints = pairs.fingerprints("pair")
    is_first = splitting.find_first(fingerprints)
    is_kept = is_first
    if config.data.max_pairs is not None:
        is_kept = is_first.copy()
        is_kept[is_first] = splitting.sample_pairs(
            fingerprints[is_first], config.data.max_pairs, config.data.split.seed, "max_pairs"
        )
    n_different = int(np.count_nonzero(is_first))
    dropped[DUPLICATE] = len(pairs) - n_different
    dropped[BEYOND_MAX_PAIRS] = n_different - int(np.count_nonzero(is_kept))
    return is_kept


def _split_pairs(
    job: Job, pairs: Pairs, is_kept: Mask, sources: Sequence[Source]
) -> dict[str, Split]:
    config = job.config.data.split
    is_eligible = None
    if config.source is not None:
        is_eligible = np.zeros(len(pairs), np.bool_)
        is_eligible[next(source.part for source in sources if source.name == config.source)] = True
        is_eligible = is_eligible[is_kept]
    numbers = (splitting.number_sentences(pairs.fingerprints(side, is_kept)) for side in SIDES)
    component = splitting.connected_components(*numbers)
    fingerprints = pairs.fingerprints("pair", is_kept)
    assigned = splitting.assign_splits(fingerprints, component, config, is_eligible)

    def members(split: int) -> Mask:
        is_member = is_kept.copy()
        is_member[is_kept] = assigned == split
        return is_member

    is_train = members(splitting.TRAIN)
    splits = {"train": Split(pairs, is_train, pairs, is_train)}
    for name, split in (("dev", splitting.DEV), ("test", splitting.TEST)):
        is_member = members(split)
        # Files are often sorted by length; in random order the first N pairs are a fair sample.
        keys = splitting.random_keys(fingerprints[assigned == split], config.seed, name)
        texts, lines = (
            ["\t".join(pair) for pair in pairs.stream(is_member)],
            job.scratch / f"{name}.tsv",
        )
        write_lines(lines, (texts[index] for index in np.argsort(keys).tolist()))
        splits[name] = Split(pairs, is_member, Pairs(lines, len(texts)))
    return splits


def _write_texts(pairs: Iterable[Pair], folder: Path, name: str) -> dict[Side, Path]:
    """Write each side to its file, one sentence a line."""
    paths = {side: folder / f"{name}.{side}.txt" for side in SIDES}
    with ExitStack() as stack:
        files = [
            stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            for path in paths.values()
        ]
        for pair in pairs:
            for file, text in zip(files, pair, strict=True):
                file.write(f"{text}\n")
    return paths


def _check_like(config: Config, like: Path) -> None:
    """Raises: DataError if `like` holds no vocabularies, or they were made with other settings."""
    like_config, this_config = load_manifest(like)["config"], config.to_dict()
    for section, key in (name.split(".") for name in LIKE_SETTINGS):
        expected, actual = like_config[section].get(key), this_config[section][key]
        is_opposite = key == "direction" and expected == config.data.opposite_direction
        if actual != expected and not is_opposite:
            raise DataError(
                f"vocabulary.like: {like} was prepared with {section}.{key} {expected}, but this "
                f"configuration has {actual}; "
                f"set it to {expected}"
            )


def _sides_of_like(config: Config, like: Path) -> dict[Side, Side]:
    """The side of `like` that has the language of each side."""
    has_same_direction = load_manifest(like)["config"]["data"]["direction"] == config.data.direction
    return {"src": "src", "tgt": "tgt"} if has_same_direction else {"src": "tgt", "tgt": "src"}


def _copy_models(job: Job, like: Path) -> None:
    """Raises: DataError if a subword model is missing or damaged."""
    for side, like_side in _sides_of_like(job.config, like).items():
        path = model_path(like, like_side)
        if not path.exists():
            advice = "set vocabulary.like to a complete run or prepared folder"
            raise DataError(f"{path}: no such file; {advice}")
        check_content(path, "set vocabulary.like to an intact run or prepared folder")
        shutil.copyfile(path, model_path(job.folder, side))


def _learn_tokenizers(job: Job, train: Split) -> None:
    config = job.config
    fingerprints = train.fingerprints("pair")
    is_sampled = splitting.sample_pairs(
        fingerprints, MAX_SUBWORD_PAIRS, config.data.split.seed, "subwords"
    )
    copies = np.zeros(len(train.source), np.bool_)
    copies[train.is_member] = is_sampled
    texts = _write_texts(train.source.stream(copies), job.scratch, "subwords")
    n_sampled = int(np.count_nonzero(is_sampled))
    with job.bar("subwords", n_sampled) as bar:
        models = encoding.learn_models(
            config.tokenizer, config.vocabulary.joint, texts, job.workers
        )
        bar.update(n_sampled)
    for side, model in models.items():
        model_path(job.folder, side).write_bytes(model)


def _encode(
    job: Job, splits: dict[str, Split], tokenizers: dict[Side, TokenizerPlan]
) -> tuple[dict[str, dict[str, Any]], dict[Side, dict[str, Any]]]:
    """Tokenize, count tokens, write vocabularies and ids.

    Returns:
        Token counts by split and side; the size and coverage of each side's vocabulary.
    """
    tables = {side: TokenTable() for side in SIDES}
    tokenized: dict[str, dict[Side, TokenizedSide]] = {}
    with job.bar("tokenize", sum(map(len, splits.values()))) as bar:
        for name in SPLITS:
            tokenized[name] = {
                side: TokenizedSide(job.scratch / f"{name}.{side}.numbers") for side in SIDES
            }
            pairs, count = splits[name].stream(), name == "train"
            encoding.tokenize(
                pairs, tokenized[name], tables, tokenizers, job.workers, bar.update, count=count
            )
    like = job.config.vocabulary.like
    if like is None:
        vocabularies = encoding.build_vocabularies(job.config, tables)
    else:
        sides = _sides_of_like(job.config, like)
        vocabularies = {side: Vocabulary.load(like / f"{sides[side]}.vocab.txt") for side in SIDES}
    figures: dict[Side, dict[str, Any]] = {}
    with job.bar("write", len(SIDES) * sum(map(len, splits.values()))) as bar:
        for side in SIDES:
            vocabularies[side].save(job.folder / f"{side}.vocab.txt")
            ids = tables[side].ids(vocabularies[side])
            stems = {name: job.folder / f"{name}.{side}" for name in SPLITS}
            known = {
                name: encoding.write_ids(tokenized[name][side], ids, stem, bar.update)
                for name, stem in stems.items()
            }
            figures[side] = {
                "size": len(vocabularies[side]),
                "coverage": known["dev"] / max(1, tokenized["dev"][side].counts["tokens"]),
            }
            checks.check_vocabulary(
                side, len(vocabularies[side]) - len(SPECIALS), figures[side]["coverage"]
            )
    return {
        name: {side: sentences.counts for side, sentences in sides.items()}
        for name, sides in tokenized.items()
    }, figures


def _count_shared(splits: Mapping[str, Split], one: str, other: str, side: Side) -> int:
    """The number of different sentences of a side that two splits share."""
    return splitting.count_shared(splits[one].fingerprints(side), splits[other].fingerprints(side))


def _tokenizer_ceiling(
    job: Job, dev: Split, tokenizers: dict[Side, TokenizerPlan]
) -> tuple[dict[Side, str], dict[str, Any]]:
    """The signatures of the tokenizers, and the score of `join(split(reference))`, on the first
    `MAX_CEILING_PAIRS` of dev.
    """
    references = [tgt for _, tgt in islice(dev.stream(), MAX_CEILING_PAIRS)]
    texts: dict[Side, list[str]] = {"src": [], "tgt": references}
    futures = {
        side: job.workers.submit(encoding.detokenize, tokenizers[side], texts[side])
        for side in SIDES
    }
    results = {side: future.result() for side, future in futures.items()}
    signatures = {side: signature for side, (signature, _) in results.items()}
    return signatures, job.score(results["tgt"][1], references)
