"""The steps of `nmt prepare`: read and clean, split, learn subwords, tokenize and count, write
ids.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt.bars import progress_bar
from nmt.config.parts import TOKENIZERS
from nmt.config.schema import CleaningConfig, Config, SourceConfig
from nmt.data import checks, encoding, mixing, splitting
from nmt.data.corpus import SPLITS
from nmt.data.encoding import TokenizedSide, TokenizerPlan, TokenTable
from nmt.data.formats import open_source
from nmt.data.manifest import load_manifest
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
from nmt.evaluation.scores import score
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
        files: of each source by its key: under the language for format lines, else all under "".
        folder: a new one to fill. show_bars: of progress.
    """

    config: Config
    files: Mapping[str, Mapping[str, Sequence[Path]]]
    folder: Path
    workers: Workers
    show_bars: bool

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


def run_pipeline(job: Job) -> dict[str, Any]:
    """Write all files except the manifest into `job.folder`, and return the figures for the
    manifest.

    Raises:
        DataError: the input cannot be used.
    """
    config = job.config
    if config.vocabulary.like is not None:
        _check_like(config, config.vocabulary.like)
    job.scratch.mkdir()
    pairs, sources, held_out = _read_sources(job)
    dropped = sum((source.tally.dropped for source in sources), Counter[str]())
    naive_leak = None
    with job.bar("split", SPLIT_STEPS, " steps") as bar:
        is_kept = _keep_pairs(pairs, config, dropped)
        bar.update()
        if held_out:
            splits = {"train": Split(pairs, is_kept, pairs, is_kept)}
            splits |= {
                name: Split(source.pairs, None, source.pairs) for name, source in held_out.items()
            }
            bar.update()
        else:
            splits = _split_pairs(job, pairs, is_kept, sources)
            bar.update()
            keys = (pairs.fingerprints(side, is_kept) for side in SIDES)
            naive_leak = splitting.naive_leak(
                pairs.fingerprints("pair", is_kept), keys, config.data.split
            )
        bar.update()
        overlap = _count_overlap(splits)
        splits["train"] = mixing.apply_shares(splits["train"], sources, config.data)
        bar.update()
    for name in ("dev", "test"):
        _write_texts(
            splits[name].stream(), {side: job.folder / f"{name}.{side}.txt" for side in SIDES}
        )
    if TOKENIZERS[config.tokenizer.kind].trait("learned"):
        if config.vocabulary.like is None:
            _learn_tokenizers(job, splits["train"])
        else:
            _copy_models(job, config.vocabulary.like)
    tokenizers = encoding.plan_tokenizers(config, job.folder)
    token_counts, vocabulary = _encode(job, splits, tokenizers)
    signatures, ceiling = _tokenizer_ceiling(job, splits["dev"], tokenizers)
    shutil.rmtree(job.scratch)
    return {
        "counts": {
            "read": sum(source.tally.read for source in sources),
            "kept": int(np.count_nonzero(is_kept)),
            "dropped": {reason: dropped[reason] for reason in DROP_REASONS},
            "repaired": {
                repair: sum(
                    source.tally.repaired[repair] for source in (*sources, *held_out.values())
                )
                for repair in REPAIRS
            },
            "unreadable_lines": sources[0].tally.lines
            if len(sources) == 1
            else _join_lines(sources),
            **(
                {"sources": _count_by_source(sources, splits, is_kept)}
                if config.data.sources is not None
                else {}
            ),
        },
        "splits": {
            name: {"pairs": len(split), **token_counts[name]} for name, split in splits.items()
        },
        "overlap": overlap,
        "naive_leak": naive_leak,
        "vocabulary": vocabulary,
        "tokenizers": signatures,
        "ceiling": ceiling,
    }


def _read_sources(job: Job) -> tuple[Pairs, list[Source], dict[str, Source]]:
    """All training pairs; their sources, in the same order; and the dev and test sets with files of
    their own.
    """
    data = job.config.data
    sources, held_out = list[Source](), dict[str, Source]()
    n_bytes = sum(
        path.stat().st_size
        for by_language in job.files.values()
        for paths in by_language.values()
        for path in paths
    )
    with job.bar("read", n_bytes, "B") as bar:

        def read(
            key: str, config: SourceConfig, cleaning: CleaningConfig | None, output: PairsWriter
        ) -> Source:
            start, languages = output.count, (data.src_language, data.tgt_language)
            parts = open_source(config, job.files[key], languages)
            tally = read_pairs(
                parts,
                cleaning,
                job.workers,
                output,
                bar.update,
                languages=languages,
                target_first=data.splits_as_opposite,
            )
            return Source(
                key.removeprefix("sources."), output.pairs(), slice(start, output.count), tally
            )

        with PairsWriter(job.scratch / "source.tsv") as output:
            for key, config in data.training_sources.items():
                sources.append(read(key, config, data.cleaning, output))
        pairs = output.pairs()
        for name, source in {"dev": data.dev, "test": data.test}.items():
            if source is not None:
                with PairsWriter(job.scratch / f"{name}.tsv") as output:
                    held_out[name] = read(name, source, None, output)
    if held_out:
        names = {
            name: ", ".join(str(path) for paths in job.files[name].values() for path in paths)
            for name in held_out
        }
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
    counts = {}
    for source in sources:
        part = source.part
        members = {
            name: split.is_member
            for name, split in splits.items()
            if split.source is splits["train"].source
        }
        train = splits["train"]
        counts[source.name] = {
            "read": source.tally.read,
            "kept": int(np.count_nonzero(is_kept[part])),
            **{
                name: 0
                if (mask := members.get(name)) is None
                else int(np.count_nonzero(mask[part]))
                for name in ("dev", "test")
            },
            "train_pairs": 0
            if train.is_member is None
            else int(np.count_nonzero(train.is_member[part])),
            "training": 0 if train.copies is None else int(train.copies[part].sum(dtype=np.int64)),
        }
    return counts


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
    is_held_out = is_kept.copy()
    is_held_out[is_kept] = assigned != splitting.TRAIN
    is_train = is_kept & ~is_held_out
    splits = {"train": Split(pairs, is_train, pairs, is_train)}
    fingerprints, assigned = (
        fingerprints[assigned != splitting.TRAIN],
        assigned[assigned != splitting.TRAIN],
    )
    offsets = pairs.offsets(is_held_out)
    for name, split in (("dev", splitting.DEV), ("test", splitting.TEST)):
        is_here, is_member = assigned == split, is_held_out.copy()
        is_member[is_held_out] = is_here
        # Files are often sorted by length; in random order the first N pairs are a fair sample.
        order = np.argsort(splitting.random_keys(fingerprints[is_here], config.seed, name))
        lines = job.scratch / f"{name}.tsv"
        write_lines(lines, map("\t".join, pairs.read_at(offsets[is_here][order])))
        splits[name] = Split(pairs, is_member, Pairs(lines, len(order)))
    return splits


def _write_texts(pairs: Iterable[Pair], paths: Mapping[Side, Path]) -> None:
    """Write each side to its file, one sentence a line."""
    with ExitStack() as stack:
        files = [
            stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            for path in paths.values()
        ]
        for pair in pairs:
            for file, text in zip(files, pair, strict=True):
                file.write(f"{text}\n")


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
        try:
            check_content(
                model_path(like, like_side),
                "set vocabulary.like to an intact run or prepared folder",
            )
            shutil.copyfile(model_path(like, like_side), model_path(job.folder, side))
        except FileNotFoundError:
            raise DataError(
                f"{model_path(like, like_side)}: no such file; set vocabulary.like to a "
                "complete "
                "run or prepared folder"
            ) from None


def _learn_tokenizers(job: Job, train: Split) -> None:
    config = job.config
    fingerprints = train.fingerprints("pair")
    is_sampled = splitting.sample_pairs(
        fingerprints, MAX_SUBWORD_PAIRS, config.data.split.seed, "subwords"
    )
    copies = np.zeros(len(train.source), np.bool_)
    copies[train.is_member] = is_sampled
    texts: dict[Side, Path] = {side: job.scratch / f"subwords.{side}.txt" for side in SIDES}
    _write_texts(train.source.stream(copies), texts)
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
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
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
    figures: dict[str, dict[str, Any]] = {}
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
                "coverage": known["dev"] / max(1, tokenized["dev"][side].n_tokens),
            }
            checks.check_vocabulary(
                side, len(vocabularies[side]) - len(SPECIALS), figures[side]["coverage"]
            )
    return {
        name: {side: _token_counts(sentences) for side, sentences in sides.items()}
        for name, sides in tokenized.items()
    }, figures


def _token_counts(sentences: TokenizedSide) -> dict[str, float]:
    mean = round(sentences.n_tokens / max(1, sentences.n_sentences), 2)
    return {"tokens": sentences.n_tokens, "mean": mean, "longest": sentences.longest}


def _count_overlap(splits: Mapping[str, Split]) -> dict[str, dict[Side, int]]:
    """The number of different source and target sentences that each two splits share."""
    return {
        f"{first}-{second}": {
            side: splitting.count_shared(
                splits[first].fingerprints(side), splits[second].fingerprints(side)
            )
            for side in SIDES
        }
        for first, second in combinations(splits, 2)
    }


def _tokenizer_ceiling(
    job: Job, dev: Split, tokenizers: dict[Side, TokenizerPlan]
) -> tuple[dict[Side, str], dict[str, Any]]:
    """The signatures of the tokenizers, and the BLEU of `join(split(reference))`: the best score a
    model can reach on dev.

    It is measured on the first `MAX_CEILING_PAIRS` of dev.
    """
    references = [tgt for _, tgt in islice(dev.stream(), MAX_CEILING_PAIRS)]
    texts: dict[Side, list[str]] = {"src": [], "tgt": references}
    futures = {
        side: job.workers.submit(encoding.detokenize, tokenizers[side], texts[side])
        for side in SIDES
    }
    results = {side: future.result() for side, future in futures.items()}
    outputs = results["tgt"][1]
    (cased,) = score(outputs, [references], ["BLEU"])
    (caseless,) = score(outputs, [references], ["BLEU"], lowercase=True)
    ceiling = {
        "score": round(cased.value, 2),
        "signature": cased.signature,
        "score_without_case": round(caseless.value, 2),
    }
    return {side: signature for side, (signature, _) in results.items()}, ceiling
