"""Leaks between runs: one that teaches or helps another must not know its dev and test sets."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config.schema import Config
from nmt.data.corpus import Corpus, read_sentences, restore_pairs
from nmt.data.manifest import check_files, load_manifest, original_ranges, prepared_config
from nmt.data.reading import Pair
from nmt.data.splitting import sentence_key
from nmt.errors import CheckpointError, DataError
from nmt.run.folder import (
    ancestors,
    check_same_data,
    load_run_config,
    load_tokenizers,
    load_vocabularies,
)
from nmt.run.load import opened
from nmt.text.tokenizers import SIDES, Tokenizer
from nmt.text.vocabulary import Vocabulary

HeldOut = Mapping[str, Set[str]]  # the keys of the sentences of dev and test, by side


def shared_with(held_out: HeldOut, pairs: Iterable[Pair]) -> HeldOut:
    """The keys that are also keys of `pairs`."""
    found: dict[str, set[str]] = {"src": set(), "tgt": set()}
    for pair in pairs:
        for side, text in zip(SIDES, pair, strict=True):
            found[side].add(sentence_key(text))
    return {side: held_out[side] & found[side] for side in SIDES}


@dataclass(frozen=True)
class PreparedData:
    """A prepared folder. tokenizers, vocabularies: (source, target). corpus: the training data.
    held_out: dev and test.
    """

    folder: Path
    manifest: dict[str, Any]
    config: Config
    tokenizers: tuple[Tokenizer, Tokenizer]
    vocabularies: tuple[Vocabulary, Vocabulary]
    corpus: Corpus
    held_out: HeldOut

    @classmethod
    def load(cls, folder: Path) -> "PreparedData":
        """Raises: DataError if the folder is not prepared, or damaged."""
        manifest = load_manifest(folder)
        check_files(folder, manifest)
        config = prepared_config(folder, manifest)
        held_out: HeldOut = {
            side: {
                sentence_key(text)
                for split in ("dev", "test")
                for text in read_sentences(folder, split, side)
            }
            - {""}
            for side in SIDES
        }
        return cls(
            folder,
            manifest,
            config,
            load_tokenizers(folder, config),
            load_vocabularies(folder),
            Corpus.load(folder, "train"),
            held_out,
        )

    def pairs(self) -> Iterator[Pair]:
        """The training pairs as text, see `restore_texts`."""
        return restore_pairs(self.corpus, self.tokenizers, self.vocabularies)

    def original_pairs(self) -> Iterator[Pair]:
        """Those of `pairs` that no model has made, each once. Raises: DataError if there are
        none.
        """
        corpus = self.corpus.selection(original_ranges(self.folder, self.manifest))
        return restore_pairs(corpus, self.tokenizers, self.vocabularies)


def check_teacher(run: Path, data: PreparedData, direction: str, known: HeldOut) -> None:
    """Check a run that translates the training data of `data` in `direction`, or gives
    probabilities for it.

    Args:
        known: the keys of dev and test that the training data of `data` itself contains.

    Raises:
        DataError: the run translates in another direction or another case; its training data, or
            that of a run that it starts from, is missing, or has dev or test sentences that are not
            in `known`.
    """
    config = load_run_config(run)
    if config.data.direction != direction:
        raise DataError(
            f"{run}: translates {config.data.direction}; a run for {direction} is needed here"
        )
    if config.tokenizer.lowercase != data.config.tokenizer.lowercase:
        raise DataError(
            f"{run}: differs from {data.folder} in tokenizer.lowercase; use a run of the same case"
        )
    try:
        for trained_run in (run, *ancestors(run)):
            if n_leaked := _count_leaked(trained_run, data, known):
                own = data.config.data.direction
                remedy = "use a run on the same split"
                if load_run_config(trained_run).data.direction != own:
                    remedy = f"data.split.direction={own} gives both directions the same split"
                raise DataError(
                    f"{trained_run}: its training data has {n_leaked:,} dev and test sentences of "
                    f"{data.folder}; {remedy}"
                )
    except CheckpointError as error:
        raise DataError(f"{error}; its training data may have dev and test sentences") from None


def check_rankers(runs: Iterable[Path], prepared: Path) -> None:
    """Raises: DataError if a run that ranks translations knows sentences of dev or test."""
    for path in runs:
        data = PreparedData.load(prepared)
        known = shared_with(data.held_out, data.pairs())
        with opened(path) as (run, _):
            check_teacher(run, data, data.config.data.opposite_direction, known)


def _count_leaked(run: Path, data: PreparedData, known: HeldOut) -> int:
    """How many dev and test sentences of `data`, without those in `known`, are in the training data
    of a run.
    """
    if load_manifest(run)["content"] == data.manifest["content"]:
        return 0
    config = load_run_config(run)
    try:
        check_same_data(run, config.prepared_folder)
        corpus = Corpus.load(config.prepared_folder, "train")
    except DataError as error:
        raise DataError(
            f"{run}: its training data is needed, to look for dev and test sentences ({error})"
        ) from None
    held_out = data.held_out
    if config.data.direction == data.config.data.opposite_direction:
        known, held_out = ({"src": keys["tgt"], "tgt": keys["src"]} for keys in (known, held_out))
    pairs = restore_pairs(corpus, load_tokenizers(run, config), load_vocabularies(run))
    shared = shared_with(held_out, pairs)
    return sum(len(shared[side] - known[side]) for side in SIDES)
