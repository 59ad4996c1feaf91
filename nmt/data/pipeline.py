"""The steps of `nmt prepare`: read, clean, split, learn subwords, tokenize, count, write ids."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from nmt.config.parts import FILTERS, TOKENIZERS
from nmt.config.schema import CleaningConfig, Config, SourceConfig
from nmt.data import checks, encoding, splitting
from nmt.data.cleaning import no_translation
from nmt.data.corpus import SPLITS
from nmt.data.encoding import TokenizedSide, TokenizerPlan, TokenTable
from nmt.data.formats import Files, open_source
from nmt.data.reading import (
    BEYOND_MAX_PAIRS,
    DROP_REASONS,
    DUPLICATE,
    HELD_OUT,
    SUSPICIOUS,
    Pair,
    Pairs,
    Source,
    Split,
    Tally,
    apply_shares,
    read_pairs,
)
from nmt.data.splitting import Mask
from nmt.data.workers import Workers
from nmt.errors import DataError
from nmt.lines import archive_of, write_lines
from nmt.text.tokenizers import REPAIRS, SIDES, Side, model_path
from nmt.text.vocabulary import SPECIALS, Vocabulary


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
        return self.folder / "scratch"

    @property
    def tokenizers(self) -> dict[Side, TokenizerPlan]:
        languages = self.config.data.direction.split("-")
        return {
            side: (self.config.tokenizer, language, side, self.folder)
            for side, language in zip(SIDES, languages, strict=True)
        }

    def bar(self, label: str, total: int, unit: str = " pairs") -> "tqdm[Any]":
        """A bar of the progress of a step."""
        return tqdm(
            total=total, desc=f"{label:<9}", unit=unit, unit_scale=True, disable=not self.show_bars
        )


def run_pipeline(job: Job) -> dict[str, Any]:
    """Write all files except the manifest into `job.folder`, and return the figures for it.

    Returns:
        counts: pairs `read` and `kept`, `dropped` by reason; sentences `repaired`, by repair; the
            first lines that were dropped, by reason (`unreadable_lines`: others have no pair that
            can be used either); and `sources`, if they have names. Of each filter, its figures.
        read_as: what the rows of each source have.
        splits: pairs and tokens of each. overlap: sentences that two of them share.
        naive_leak: the part of the test pairs that a random split would leak; None without a split.
        vocabulary: size, coverage, and new tokens if it extends another, by side.
        tokenizers: signatures, by side. ceiling: the best score that a model can reach on dev.

    Raises:
        DataError: the input cannot be used.
    """
    config = job.config
    like = config.vocabulary.like
    given_vocabularies = None if like is None else encoding.copy_like(config, like, job.folder)
    job.scratch.mkdir()
    pairs, sources, held_out = _read_sources(job)
    is_out, found = np.zeros(len(pairs), np.bool_), dict[str, Any]()
    for name, part in FILTERS.items():
        is_dropped, found[name] = part.load()(job, sources, [*held_out.values()])
        is_out |= is_dropped
    total = Tally()
    for source in sources:
        total.add(source.tally, source.name if len(sources) > 1 else None)
    splits, is_kept, shared = _make_splits(job, pairs, sources, held_out, total.dropped, is_out)
    for name in ("dev", "test"):
        _write_texts(splits[name].stream(), job.folder, name)
    if like is None and TOKENIZERS[config.tokenizer.kind].trait("learned"):
        _learn_tokenizers(job, splits["train"])
    token_counts, vocabulary = _encode(job, splits, given_vocabularies)
    signatures, ceiling = _tokenizer_ceiling(job, splits["dev"])
    shutil.rmtree(job.scratch)
    counts = _counts(total, held_out.values(), is_kept)
    if config.data.sources is not None:
        counts["sources"] = _count_by_source(sources, splits, is_kept)
    return {
        "counts": counts,
        "read_as": {source.name: source.form for source in [*sources, *held_out.values()]},
        "splits": {
            name: {"pairs": len(split), **token_counts[name]} for name, split in splits.items()
        },
        **found,
        **shared,
        "vocabulary": vocabulary,
        "tokenizers": signatures,
        "ceiling": ceiling,
    }


def _counts(total: Tally, held_out: Iterable[Source], is_kept: Mask) -> dict[str, Any]:
    repaired = sum((source.tally.repaired for source in held_out), total.repaired)
    return {
        "read": total.read,
        "kept": int(np.count_nonzero(is_kept)),
        "dropped": {reason: total.dropped[reason] for reason in DROP_REASONS},
        "repaired": {repair: repaired[repair] for repair in REPAIRS},
        "unreadable_lines": total.lines,
    }


def _read_sources(job: Job) -> tuple[Pairs, list[Source], dict[str, Source]]:
    """All training pairs; their sources, in the same order; dev and test if they have own files."""
    data = job.config.data
    paths = {
        key: [path for paths in files.values() for path in paths]
        for key, files in job.files.items()
    }
    inputs = {archive_of(path) for path in chain.from_iterable(paths.values())}
    n_bytes = sum(path.stat().st_size for path in inputs)
    pairs = Pairs(job.scratch / "source.tsv")
    with job.bar("read", n_bytes, "B") as bar:
        sources = [
            _read_source(job, key, config, data.cleaning, pairs, bar.update)
            for key, config in data.training_sources.items()
        ]
        held_out = {
            name: _read_source(
                job, name, config, None, Pairs(job.scratch / f"{name}.tsv"), bar.update
            )
            for name, config in {"dev": data.dev, "test": data.test}.items()
            if config is not None
        }
    if held_out:
        names = {name: ", ".join(map(str, paths[name])) for name in held_out}
        sets = {name: source.pairs.fingerprints for name, source in held_out.items()}
        without = {
            name: [
                number
                for number, pair in enumerate(source.pairs.stream(), start=1)
                if no_translation(*pair)
            ]
            for name, source in held_out.items()
        }
        checks.check_held_out(names, {"source": pairs.fingerprints, **sets}, without)
    return pairs, sources, held_out


def _read_source(
    job: Job,
    key: str,
    config: SourceConfig,
    cleaning: CleaningConfig | None,
    output: Pairs,
    advance: Callable[[int], object],
) -> Source:
    """Append the pairs of a source to `output`; see `read_pairs`."""
    data = job.config.data
    languages = (data.src_language, data.tgt_language)
    opened = open_source(config, job.files[key], languages)
    start = len(output)
    tally = read_pairs(
        opened,
        cleaning,
        job.workers,
        output,
        advance,
        languages=languages,
        target_first=data.split.direction == data.opposite_direction,
    )
    form = " or ".join(dict.fromkeys(source.expected for source in opened))
    texts = chain.from_iterable(pair for source in opened for pair in source.held_out())
    keys = b"".join(splitting.fingerprint(splitting.sentence_key(text)) for text in texts)
    held_out = np.frombuffer(keys, "<u8").reshape(-1, 2)
    part = slice(start, len(output))
    return Source(key.removeprefix("sources."), output, part, tally, form, held_out)


def _make_splits(
    job: Job,
    pairs: Pairs,
    sources: Sequence[Source],
    held_out: Mapping[str, Source],
    dropped: dict[str, int],
    is_suspicious: Mask,
) -> tuple[dict[str, Split], Mask, dict[str, Any]]:
    """Train, dev and test; which pairs are kept; what the splits, and those of a random split,
    share. `dropped` counts the pairs that are not kept.
    """
    naive_leak = None
    with job.bar("split", 4, " steps") as bar:
        is_kept = _keep_pairs(pairs, sources, job.config, dropped, is_suspicious)
        bar.update()
        if held_out:
            splits = {"train": Split(pairs, is_kept, pairs, is_kept)}
            splits |= {name: Split(each.pairs, None, each.pairs) for name, each in held_out.items()}
        else:
            splits = _split_pairs(job, pairs, is_kept, sources)
            naive_leak = splitting.naive_leak(
                pairs.fingerprints("pair", is_kept),
                (pairs.fingerprints(side, is_kept) for side in SIDES),
                job.config.data.split,
            )
        bar.update(2)
        overlap = {
            f"{one}-{other}": {
                side: int(
                    splitting.are_among(
                        np.unique(splits[other].fingerprints(side)), splits[one].fingerprints(side)
                    ).sum()
                )
                for side in SIDES
            }
            for one, other in combinations(splits, 2)
        }
        splits["train"] = apply_shares(splits["train"], sources, job.config.data)
        bar.update()
    return splits, is_kept, {"overlap": overlap, "naive_leak": naive_leak}


def _keep_pairs(
    pairs: Pairs,
    sources: Sequence[Source],
    config: Config,
    dropped: dict[str, int],
    is_suspicious: Mask,
) -> Mask:
    """Which pairs are kept: none with a sentence that a source holds out, no suspicious one, none
    twice, at most `data.max_pairs`. `dropped` counts the others.

    Raises:
        DataError: each has a sentence that a source holds out, or is suspicious.
    """
    is_held_out = np.zeros(len(pairs), np.bool_)
    held_out = np.concatenate([source.held_out for source in sources])
    for side, keys in zip(SIDES, held_out.T, strict=True) if len(held_out) else ():
        fingerprints = pairs.fingerprints(side)
        for block in splitting.blocks(len(pairs)):
            is_held_out[block] |= splitting.are_among(fingerprints[block], keys)
    dropped[HELD_OUT] = n_held_out = int(np.count_nonzero(is_held_out))
    if n_held_out == len(pairs):
        raise DataError("data: no pair is left, dev and test of a prepared source have them all")
    is_out = is_held_out | is_suspicious
    dropped[SUSPICIOUS] = n_suspicious = int(np.count_nonzero(is_out)) - n_held_out
    if is_out.all():
        raise DataError("data.cleaning: drops all pairs as suspicious; set it to warn")
    fingerprints = pairs.fingerprints("pair")
    is_first = splitting.find_first(fingerprints) & ~is_out
    is_kept = is_first.copy()
    if config.data.max_pairs is not None:
        is_kept[is_first] = splitting.sample_pairs(
            fingerprints[is_first], config.data.max_pairs, config.data.split.seed, "max_pairs"
        )
    n_different = int(np.count_nonzero(is_first))
    dropped[DUPLICATE] = len(pairs) - n_held_out - n_suspicious - n_different
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
    component = splitting.connected_components(
        *(splitting.number_sentences(pairs.fingerprints(side, is_kept)) for side in SIDES)
    )
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
        texts = ["\t".join(pair) for pair in pairs.stream(is_member)]
        lines = job.scratch / f"{name}.tsv"
        write_lines(lines, (texts[index] for index in np.argsort(keys).tolist()))
        splits[name] = Split(pairs, is_member, Pairs(lines, len(texts)))
    return splits


def _write_texts(pairs: Iterable[Pair], folder: Path, name: str) -> dict[Side, Path]:
    """Write each side to its file, one sentence a line."""
    paths = {side: folder / f"{name}.{side}.txt" for side in SIDES}
    with (
        paths["src"].open("w", encoding="utf-8", newline="\n") as src_file,
        paths["tgt"].open("w", encoding="utf-8", newline="\n") as tgt_file,
    ):
        for src, tgt in pairs:
            src_file.write(f"{src}\n")
            tgt_file.write(f"{tgt}\n")
    return paths


def _learn_tokenizers(job: Job, train: Split) -> None:
    config = job.config
    fingerprints = train.fingerprints("pair")
    # More pairs would take more time and memory.
    is_sampled = splitting.sample_pairs(fingerprints, 200_000, config.data.split.seed, "subwords")
    copies = np.zeros(len(train.source), np.bool_)
    copies[train.is_member] = is_sampled
    texts = _write_texts(train.source.stream(copies), job.scratch, "subwords")
    n_sampled = int(np.count_nonzero(is_sampled))
    groups = [SIDES] if config.vocabulary.joint else [(side,) for side in SIDES]
    with job.bar("subwords", n_sampled) as bar:
        futures = [
            job.workers.submit(encoding.learn, config.tokenizer, [texts[side] for side in group])
            for group in groups
        ]
        for group, future in zip(groups, futures, strict=True):
            for side in group:
                model_path(job.folder, side).write_bytes(future.result())
        bar.update(n_sampled)


def _encode(
    job: Job,
    splits: dict[str, Split],
    given_vocabularies: dict[Side, Vocabulary] | None,
) -> tuple[dict[str, dict[str, Any]], dict[Side, dict[str, Any]]]:
    """Tokenize, count tokens, write vocabularies and ids.

    Returns:
        Token counts by split and side; the size and coverage of each side's vocabulary, and how
        many of its tokens are new, if it extends another.
    """
    tables = {side: TokenTable() for side in SIDES}
    tokenized: dict[str, dict[Side, TokenizedSide]] = {}
    with job.bar("tokenize", sum(map(len, splits.values()))) as bar:
        for name in SPLITS:
            tokenized[name] = {
                side: TokenizedSide(job.scratch / f"{name}.{side}.numbers") for side in SIDES
            }
            encoding.tokenize(
                splits[name].stream(),
                tokenized[name],
                tables,
                job.tokenizers,
                job.workers,
                bar.update,
                count=name == "train",
            )
    vocabularies = encoding.build_vocabularies(job.config, tables, given_vocabularies)
    if given_vocabularies is None and TOKENIZERS[job.config.tokenizer.kind].trait("learned"):
        checks.check_subwords(vocabularies, job.config.tokenizer.size)
    figures: dict[Side, dict[str, Any]] = {}
    with job.bar("write", len(SIDES) * sum(map(len, splits.values()))) as bar:
        for side in SIDES:
            vocabularies[side].save(job.folder / f"{side}.vocab.txt")
            ids = tables[side].ids(vocabularies[side])
            known = {
                name: encoding.write_ids(
                    tokenized[name][side], ids, job.folder / f"{name}.{side}", bar.update
                )
                for name in SPLITS
            }
            size = len(vocabularies[side])
            coverage = known["dev"] / max(1, tokenized["dev"][side].counts["tokens"])
            figures[side] = {"size": size, "coverage": coverage}
            if given_vocabularies is not None and job.config.vocabulary.extend:
                figures[side]["new"] = size - len(given_vocabularies[side])
            checks.check_vocabulary(side, size - len(SPECIALS), coverage)
    return {
        name: {side: sentences.counts for side, sentences in sides.items()}
        for name, sides in tokenized.items()
    }, figures


def _tokenizer_ceiling(job: Job, dev: Split) -> tuple[dict[Side, str], dict[str, Any]]:
    """The signatures of the tokenizers, and the score of `join(split(reference))` on dev."""
    references = [tgt for _, tgt in islice(dev.stream(), 20_000)]
    texts: dict[Side, list[str]] = {"src": [], "tgt": references}
    results = {
        side: job.workers.submit(encoding.detokenize, plan, texts[side]).result()
        for side, plan in job.tokenizers.items()
    }
    signatures = {side: signature for side, (signature, _) in results.items()}
    return signatures, job.score(results["tgt"][1], references)


def _count_by_source(
    sources: Sequence[Source], splits: Mapping[str, Split], is_kept: Mask
) -> dict[str, dict[str, int]]:
    """The pairs of each source, and where they are. training: with the copies that shares make."""
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
