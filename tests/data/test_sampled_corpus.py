"""nmt.data.sampled_corpus: other segmentations in each epoch, the same ones in every process and
after a resume.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.commands import prepare
from nmt.config.load import config_from_dict
from nmt.config.schema import Config
from nmt.config.yaml_text import dump
from nmt.data import epochs as epochs_module
from nmt.data.corpus import Corpus, Sequences
from nmt.data.epochs import Part, divide_epochs
from nmt.data.sampled_corpus import SampledCorpus, load_training_corpus
from nmt.errors import DataError
from nmt.run.progress import Progress
from nmt.text.vocabulary import PAD
from nmt.training.distributed import SINGLE_PROCESS, World
from nmt.training.loop import planned_updates
from tests import toy
from tests.conftest import Result


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Config]:
    """Prepared data for each kind of subwords, and a small configuration that samples both
    sides.
    """
    folder = tmp_path_factory.mktemp("sampled")
    table = toy.write_table(folder / "pairs.tsv", toy.sentence_pairs()[:200])

    def configure(kind: str) -> Config:
        config = toy.configure(
            table,
            data={"split": {"dev": 10, "test": 10}, "prepared": str(folder / kind)},
            tokenizer={"kind": kind, "size": 60},
            model={
                "embedding_size": 8,
                "encoder": {"hidden_size": 8},
                "decoder": {"hidden_size": 8},
            },
            training={
                "max_steps": 30,
                "validate_every": 30,
                "validation_pairs": 4,
                "batch": {"size": 16},
                "subword_sampling": {"src": 0.2, "tgt": 0.3},
            },
        )
        prepare.run(config, progress=False)
        return config

    return {kind: configure(kind) for kind in ("bpe", "unigram")}.__getitem__


@pytest.fixture
def config(configs: Callable[[str], Config], request: pytest.FixtureRequest) -> Config:
    return configs(getattr(request, "param", "bpe"))


each_kind = pytest.mark.parametrize("config", ["bpe", "unigram"], indirect=True)


def rows(corpus: Corpus) -> list[tuple[list[int], list[int]]]:
    def lists(sequences: Sequences) -> list[list[int]]:
        return [sequences[index].tolist() for index in range(len(sequences))]

    return list(zip(lists(corpus.src), lists(corpus.tgt), strict=True))


def parts(corpus: Corpus, epochs: Iterable[int]) -> Iterator[Part]:
    return divide_epochs(len(corpus), epochs, seed=1)


def first_part(corpus: Corpus, epoch: int = 0) -> Corpus:
    return corpus.in_part(next(parts(corpus, [epoch])))


def changed(config: Config, **sections: object) -> Config:
    values = config.to_dict()
    values["training"] |= sections
    return config_from_dict(values)


@each_kind
def test_each_epoch_has_its_own_samples(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = load_training_corpus(config)
    epochs = {
        part.epoch: rows(sentences) for part, sentences in corpus.in_parts(parts(corpus, range(3)))
    }
    assert rows(corpus) == rows(Corpus.load(config.prepared_folder, "train"))
    assert all(epochs[first] != epochs[second] for first, second in ((0, 1), (0, 2), (1, 2)))
    monkeypatch.setattr(epochs_module, "RANGE_PAIRS", 7)
    again = load_training_corpus(config)
    assert rows(first_part(again, 1)) == epochs[1]
    assert [rows(sentences) for _, sentences in again.in_parts(parts(again, range(1, 3)))] == [
        epochs[1],
        epochs[2],
    ]
    other_seed = config_from_dict({**config.to_dict(), "seed": 2})
    assert rows(first_part(load_training_corpus(other_seed), 1)) != epochs[1]


def test_one_side_alone(config: Config) -> None:
    fixed = Corpus.load(config.prepared_folder, "train")
    corpus = first_part(load_training_corpus(changed(config, subword_sampling={"tgt": 0.5})))
    both = first_part(
        load_training_corpus(changed(config, subword_sampling={"src": 0.5, "tgt": 0.5}))
    )
    assert [src for src, _ in rows(corpus)] == [src for src, _ in rows(fixed)]
    assert (
        [tgt for _, tgt in rows(corpus)]
        == [tgt for _, tgt in rows(both)]
        != [tgt for _, tgt in rows(fixed)]
    )


def test_without_rates_nothing_is_sampled(config: Config) -> None:
    corpus = load_training_corpus(changed(config, subword_sampling={}))
    assert not isinstance(corpus, SampledCorpus)
    drawn = [
        (part.epoch, sentences is corpus)
        for part, sentences in corpus.in_parts(parts(corpus, range(4, 6)))
    ]
    assert drawn == [(4, True), (5, True)]


def test_the_thread_ends_with_the_training(config: Config) -> None:
    before = threading.active_count()
    corpus = load_training_corpus(config)
    epochs = corpus.in_parts(parts(corpus, range(1000)))
    next(epochs)
    assert threading.active_count() == before + 1
    epochs.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_a_missing_subword_model(config: Config, tmp_path: Path) -> None:
    for path in config.prepared_folder.iterdir():
        if path.name != "tgt.spm.model":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    values = config.to_dict()
    values["data"]["prepared"] = str(tmp_path)
    with pytest.raises(DataError, match=r"tgt\.spm\.model: no such file"):
        load_training_corpus(config_from_dict(values))


def updates(
    config: Config, progress: Progress, world: World = SINGLE_PROCESS
) -> list[tuple[int, int, list[tuple[Any, Any]]]]:
    cpu = torch.device("cpu")
    return [
        (
            update.epoch,
            update.batch,
            [(batch.src.tolist(), batch.tgt_out.tolist()) for batch in update.micro_batches],
        )
        for update in planned_updates(load_training_corpus(config), config, progress, world, cpu)
    ]


def test_a_resumed_training_sees_the_same_batches(config: Config) -> None:
    config = changed(config, epochs=3)
    whole = updates(config, Progress())
    for reached in (5, 17):
        epoch, batch, _ = whole[reached]
        assert updates(config, Progress(step=reached, epoch=epoch, batch=batch)) == whole[reached:]


def test_the_samples_of_a_sentence_do_not_depend_on_the_parts(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = load_training_corpus(config)
    whole = rows(first_part(corpus))
    monkeypatch.setattr(epochs_module, "PART_PAIRS", 64)
    monkeypatch.setattr(epochs_module, "RANGE_PAIRS", 8)
    drawn = [(part, rows(sentences)) for part, sentences in corpus.in_parts(parts(corpus, [0]))]
    assert len(drawn) > 2
    assert all(sentences == [whole[index] for index in part.indices()] for part, sentences in drawn)


def test_several_processes_see_the_same_samples(config: Config) -> None:
    single = updates(changed(config, epochs=2, batch={"size": 32}), Progress())
    parts = [
        updates(changed(config, epochs=2, batch={"size": 16}), Progress(), World(rank=rank, size=2))
        for rank in (0, 1)
    ]
    for (epoch, batch, whole), *shards in zip(single, *parts, strict=True):
        assert all(shard[:2] == (epoch, batch) for shard in shards)
        assert sentences(whole) == sentences(
            [micro_batch for *_, micro_batches in shards for micro_batch in micro_batches]
        )


def sentences(micro_batches: Sequence[tuple[Any, Any]]) -> list[list[list[int]]]:
    """Sorted, without padding."""
    pairs = [pair for batch in micro_batches for pair in zip(*batch, strict=True)]
    return sorted([[id_ for id_ in side if id_ != PAD] for side in pair] for pair in pairs)


@pytest.mark.slow
def test_a_resumed_training_ends_with_the_same_weights(
    config: Config, nmt: Callable[..., Result], tmp_path: Path
) -> None:
    """At step 30 the third epoch has begun; the interruption is in the second."""
    (tmp_path / "toy.yaml").write_text(dump(config), encoding="utf-8")
    train = ("train", "-c", tmp_path / "toy.yaml", "--device", "cpu", "-q")
    assert nmt(*train, "-o", tmp_path / "whole").status == 0
    for steps in (17, 30):
        assert (
            nmt(
                *train, "-o", tmp_path / "parts", "--resume", "--set", f"training.max_steps={steps}"
            ).status
            == 0
        )
    for file in ("model", "optimizer"):
        whole, parts = (
            (tmp_path / run / "checkpoints" / "step-00000030" / f"{file}.safetensors").read_bytes()
            for run in ("whole", "parts")
        )
        assert parts == whole
    changed_rate = nmt(
        *train, "-o", tmp_path / "parts", "--resume", "--set", "training.subword_sampling.src=0.5"
    )
    assert changed_rate.status == 1
    assert "training.subword_sampling.src: was 0.2, is 0.5" in changed_rate.err
    assert nmt("train", "-c", tmp_path / "toy.yaml", "--dry-run", "--device", "cpu").status == 0
    assert nmt("translate", "--run", tmp_path / "whole", "The dog sees the tree.").status == 0
