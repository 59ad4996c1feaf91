"""Nearest-neighbor translation: the equation in NumPy, search with real models, the pairs of a run,
and errors.
"""

import csv
import json
import shutil
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from math import log, sqrt
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from nmt.config.schema import DecodingConfig
from nmt.data.batches import build_batch
from nmt.data.corpus import Corpus, read_sentences
from nmt.decoding.forced import score_batch
from nmt.decoding.model import TranslationModel
from nmt.decoding.onnx_model import OnnxModel
from nmt.decoding.search import search
from nmt.decoding.torch_model import TorchModel, graphs_of
from nmt.errors import DataError
from nmt.extras.neighbors import command as neighbors
from nmt.extras.neighbors import model as module
from nmt.extras.neighbors.datastore import Datastore
from nmt.extras.neighbors.keys import NeighborsConfig
from nmt.extras.neighbors.model import (
    HEADER,
    NeighborModel,
    SimilarSentences,
    load_pairs,
    save_pairs,
)
from nmt.files import record_checksums, sha256_of, write_recorded
from nmt.text.vocabulary import EOS, SOS
from tests import toy
from tests.conftest import Run
from tests.decoding.test_search import make_model, make_sources
from tests.toy import sequences

SRC = [[4, 7, 5], [4, 7, 6, 6], [8, 9], [10, 4, 7, 5, 11], [5]]
TGT = [[6, 6], [9, 10, 4], [5, 5, 5], [8], [11, 4]]
OPTIONS = NeighborsConfig(pairs=3, weight=0.7, distance=2.0)


def with_neighbors(
    model: TranslationModel,
    options: NeighborsConfig = OPTIONS,
    *,
    src: Sequence[Sequence[int]] = SRC,
    tgt: Sequence[Sequence[int]] = TGT,
) -> NeighborModel:
    pairs = Corpus(sequences(src), sequences(tgt))
    return NeighborModel(model, pairs, SimilarSentences(pairs.src, 12), options)


def make_torch_model() -> TorchModel:
    return TorchModel(make_model())


def best_ids(model: TranslationModel, sources: list[list[int]]) -> list[list[int]]:
    return [one.ids for (one,) in search(model, sources, DecodingConfig(beam=3))]


@pytest.mark.parametrize("system", ["global", "gru, bahdanau", "input feeding"])
def test_the_equation(system: str) -> None:
    model = make_model(system)
    neighbor_model, source, target = with_neighbors(TorchModel(model)), [4, 7, 5, 9], [6, 9, 10]
    found = neighbor_model.similar.rank(source, OPTIONS.pairs)[0].tolist()
    assert len(found) == OPTIONS.pairs
    keys, values = [], []
    with torch.inference_mode():
        for pair in found:  # each alone, without padding
            batch = build_batch([SRC[pair]], [TGT[pair]])
            keys.append(model(batch.src, batch.src_lengths, batch.tgt_in).vectors[0].numpy())
            values += [*TGT[pair], EOS]
        decoded = model(
            torch.tensor([[*source, EOS]]), torch.tensor([5]), torch.tensor([[SOS, *target]])
        )
        queries, p_model = (
            decoded.vectors[0].numpy(),
            model.output.log_probs(decoded.vectors).exp()[0].numpy(),
        )
    expected, weights = [], []
    for step, token in enumerate([*target, EOS]):
        distances = ((np.concatenate(keys) - queries[step]) ** 2).mean(1)
        kernel = np.exp(-3 * distances / OPTIONS.distance)
        p_neighbors = kernel[np.array(values) == token].sum() / kernel.sum()
        weights.append(OPTIONS.weight * max(0, 1 - distances.min() / OPTIONS.distance))
        expected.append(
            np.log((1 - weights[-1]) * p_model[step, token] + weights[-1] * p_neighbors)
        )
    assert max(weights) > 0.1
    (log_probs,) = score_batch(neighbor_model, [source], [target])
    np.testing.assert_allclose(log_probs, expected, rtol=1e-9)


@torch.inference_mode()
def test_the_keys_are_those_of_teacher_forcing() -> None:
    """Also where the graphs of the model compute them, for several pairs at a time."""
    model, pairs = make_model("input feeding").float(), Corpus(sequences(SRC), sequences(TGT))
    graphs = OnnxModel(graphs_of(model, "float32") or {})
    stores = [Datastore.of(form, pairs) for form in (TorchModel(model), graphs)]
    for number, (src, tgt) in enumerate(zip(SRC, TGT, strict=True)):
        batch = build_batch([src], [tgt])
        expected = model(batch.src, batch.src_lengths, batch.tgt_in).vectors[0].numpy()
        for store in stores:
            np.testing.assert_allclose(store.keys[store.rows([number])], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("distance", "max_keys", "tolerance"), [(1000, 1, 1e-6), (1e-8, 32, 1e-3), (1e-10, 32, 1e-3)]
)
def test_at_a_token_of_a_known_pair_the_nearest_key_is_its_own(
    distance: float, max_keys: int, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also at small distances: in float32, squares and products of close vectors leave an error of
    1e-8 and more.
    """
    monkeypatch.setattr(module, "MAX_KEYS", max_keys)
    model = TorchModel(make_model().float())
    neighbor_model = with_neighbors(model, NeighborsConfig(pairs=3, weight=0.9, distance=distance))
    log_probs, *_ = score_batch(neighbor_model, [SRC[0]], [TGT[0]])
    alone, *_ = score_batch(model, [SRC[0]], [TGT[0]])
    np.testing.assert_allclose(np.exp(log_probs), 0.1 * np.exp(alone) + 0.9, rtol=tolerance)


def test_a_sentence_alone_has_the_hypotheses_that_it_has_in_a_batch() -> None:
    model, sources, options = (
        with_neighbors(make_torch_model()),
        make_sources(),
        DecodingConfig(beam=3),
    )
    together = search(model, sources, options, n_best=3)
    for source, hypotheses in zip(sources, together, strict=True):
        (alone,) = search(model, [source], options, n_best=3)
        assert [one.ids for one in alone] == [one.ids for one in hypotheses]
        np.testing.assert_allclose(
            [one.log_prob for one in alone], [one.log_prob for one in hypotheses]
        )


def test_without_weight_far_away_or_without_similar_pairs_it_is_the_model() -> None:
    model = make_torch_model()
    for neighbor_model, sources in (
        (with_neighbors(model, NeighborsConfig(pairs=3, weight=0)), make_sources()),
        (with_neighbors(model, NeighborsConfig(pairs=3, distance=1e-9)), make_sources()),
        (with_neighbors(model, src=[[4, 5]], tgt=[[4]]), [[6, 6, 8], [11, 9]]),
    ):
        assert best_ids(neighbor_model, sources) == best_ids(model, sources)


@pytest.mark.parametrize(("most", "third"), [(1 << 17, 0), (0, 2)])
def test_keys_are_remembered_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, most: int, third: int
) -> None:
    made, keys_of = list[list[int]](), Datastore.of

    def of(model: TranslationModel, pairs: Corpus) -> Datastore:
        made.append(pairs.src[0].tolist())
        return keys_of(model, pairs)

    monkeypatch.setattr(module, "MAX_REMEMBERED", most)
    model, sources, target = make_torch_model(), [[8, 9], [6, 6], [8, 9]], [5, 5]
    alone = [score_batch(with_neighbors(model), [each], [target])[0] for each in sources]
    monkeypatch.setattr(Datastore, "of", of)
    neighbor_model = with_neighbors(model)
    again = [score_batch(neighbor_model, [each], [target])[0] for each in sources]
    for one, other in zip(again, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert made == [SRC[0], SRC[1], SRC[third]]  # the first pair stands for none


# --- Similar sentences, against a count by hand

V = 7
sentences = st.lists(st.integers(4, V - 1), max_size=6)


def features(row: Sequence[int]) -> set[tuple[int, ...]]:
    return {(one,) for one in row} | set(pairwise(row))


@example(
    [[4, 5], [5, 5]], [5, 4, 5, 5], 1, 2
)  # a feature that no sentence has, between features of both
@given(
    st.lists(sentences, min_size=1, max_size=12),
    sentences,
    st.integers(1, 15),
    st.sampled_from([2, 100]),
)
def test_similarity_is_the_cosine_of_the_weights(
    rows: list[list[int]], query: list[int], n: int, most: int
) -> None:
    counts: dict[tuple[int, ...], int] = {}
    for row in rows:
        for feature in features(row):
            counts[feature] = counts.get(feature, 0) + 1
    weight = {feature: log(len(rows) / count) for feature, count in counts.items()}
    similarity = []
    for row in rows:
        shared = {one for one in features(row) & features(query) if counts[one] <= most}
        norm = sqrt(sum(weight[feature] ** 2 for feature in features(row)))
        similarity.append(sum(weight[feature] ** 2 for feature in shared) / norm if norm else 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_SENTENCES", most)
        found = SimilarSentences(sequences(rows), V).rank(query, n)[0].tolist()
    assert len(found) == min(n, sum(value > 0 for value in similarity)) == len(set(found))
    np.testing.assert_allclose(
        [similarity[i] for i in found], sorted(similarity, reverse=True)[: len(found)]
    )


def test_of_equal_sentences_the_earlier_are_found() -> None:
    similar = SimilarSentences(sequences([[4, 5], [4, 6, 5], [6, 4, 5, 5], [4, 4]] * 10), V)
    assert similar.rank([4, 6, 5], 3)[0].tolist() == [1, 5, 9]


# --- The pairs of a run


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned the pairs of the toy, and stores them."""
    run = shutil.copytree(folder / "run", tmp_path_factory.mktemp("neighbors") / "run")
    neighbors.command(run)
    return run


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to write to."""
    return shutil.copytree(trained, tmp_path / "run")


def test_the_command_stores_the_training_pairs(trained: Path, folder: Path, nmt: Run) -> None:
    printed = nmt.prints("neighbors", trained)
    pairs = load_pairs(trained / "neighbors.tsv")
    assert printed == (
        f"{trained / 'neighbors.tsv'}: {len(pairs)} pairs; translate with --set "
        "decoding.neighbors.pairs=64\n"
    )
    assert set(pairs) <= set(toy.sentence_pairs())
    assert len(set(pairs)) == len(pairs) == len(Corpus.load(folder / "prepared", "train"))


def test_a_pair_that_a_user_adds_is_translated_so(run: Path, folder: Path, nmt: Run) -> None:
    first, second, *_ = dict.fromkeys(
        read_sentences(folder / "prepared", "test", "src")
    )  # not in the training data
    command = ("translate", "--run", run, "--set", "decoding.neighbors.pairs=8", first, second)
    before = nmt(*command)
    *words, noun = before.out.splitlines()[0].split()
    own = " ".join([*words, "Tag." if noun != "Tag." else "Hund."])
    with (run / "neighbors.tsv").open("a", encoding="utf-8") as file:
        file.write(f"{first}\t{own}\n")
    after = nmt(*command)
    assert (before.status, after.status) == (0, 0)
    text = f"nmt: warning: {run / 'neighbors.tsv'}: edited or damaged since nmt wrote it; "
    assert text in after.err
    assert after.out.splitlines() == [own, before.out.splitlines()[1]]


def test_a_check_reads_the_pairs(run: Path, nmt: Run) -> None:
    assert "ok       neighbors.tsv" in nmt("runs", "check", run).out.splitlines()
    (run / "neighbors.tsv").write_text(f"{HEADER}\nno tab\n", encoding="utf-8")
    result = nmt("runs", "check", run)
    assert result.status == 1
    assert (
        f"damaged  {run / 'neighbors.tsv'}, line 2: expected a source and a target with a tab "
        "between"
    ) in result.out


def test_a_bundle_has_sentences_only_if_its_configuration_needs_them(
    trained: Path, run: Path, tmp_path: Path, nmt: Run
) -> None:
    bundle = tmp_path / "run.nmt"
    assert nmt("share", "bundle", run, "-o", bundle).status == 0
    with zipfile.ZipFile(bundle) as archive:
        assert "neighbors.tsv" not in archive.namelist()
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    config.setdefault("decoding", {})["neighbors"] = {"pairs": 8}
    write_recorded(run / "config.yaml", yaml.safe_dump(config))
    printed = nmt.prints("share", "bundle", run)
    assert printed.endswith(" MB; with the sentences of neighbors.tsv\n")
    (run / "neighbors.tsv").unlink()
    outputs = [
        nmt("translate", "--run", *words, "--json", "The king sees the river.")
        for words in ([trained, "--set", "decoding.neighbors.pairs=8"], [bundle])
    ]
    assert (outputs[1].status, outputs[1].out) == (0, outputs[0].out)


def test_an_ensemble_looks_in_the_pairs_of_its_first_run(
    trained: Path, folder: Path, nmt: Run
) -> None:
    without = folder / "run"
    options = ("--set", "decoding.neighbors.pairs=8", "The king sees the river.")
    alone, together = (
        nmt("translate", "--run", trained, *options),
        nmt("translate", "--run", trained, "--run", without, *options),
    )
    assert (together.status, together.out) == (0, alone.out)
    text = (
        "nmt: decoding.neighbors.pairs: 8 needs the training pairs in the run; `nmt neighbors "
        f"{without}` stores them\n"
    )
    nmt.refuses(text, "translate", "--run", without, "--run", trained, *options)


def test_stored_keys_translate_as_those_made_for_the_batch(
    trained: Path, run: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stored ones are rounded. Nothing is computed from the pairs."""
    command = ("translate", "--run", run, "--set", "decoding.neighbors.pairs=8", "--json")
    texts = ("The king sees the river.", "The old dog sleeps.")
    (run / "neighbors.safetensors").unlink()
    made = [json.loads(line) for line in nmt(*command, *texts).out.splitlines()]
    (run / "neighbors.safetensors").write_bytes((trained / "neighbors.safetensors").read_bytes())
    monkeypatch.setattr(Datastore, "of", None)
    stored = [json.loads(line) for line in nmt(*command, *texts).out.splitlines()]
    assert [one["text"] for one in stored] == [one["text"] for one in made]
    for one, other in zip(stored, made, strict=True):
        assert one["log_prob"] == pytest.approx(other["log_prob"], abs=0.02)


def test_a_small_distance_takes_keys_that_are_not_rounded(
    trained: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "load_keys", None)
    options = ("--set", "decoding.neighbors.pairs=2", "--set", "decoding.neighbors.distance=0.0001")
    assert nmt("translate", "--run", trained, *options, "The king sleeps.").status == 0


def test_stored_keys_of_other_weights_are_not_used(run: Path, tmp_path: Path, nmt: Run) -> None:
    command = ("translate", "--run", run, "--set", "decoding.neighbors.pairs=8", "The king sleeps.")
    tensors = load_file(run / "neighbors.safetensors")
    tensors["digest"][0] += 1
    save_file(tensors, tmp_path / "other")
    for content, problem in (
        ((tmp_path / "other").read_bytes(), "is of other weights or pairs, so translating takes"),
        (b"?", "cannot be loaded (Error while deserializing header: header too small); repeat"),
    ):
        (run / "neighbors.safetensors").write_bytes(content)
        digest = sha256_of(run / "neighbors.safetensors")
        record_checksums(run, {"neighbors.safetensors": digest})
        result = nmt(*command)
        assert f"{run / 'neighbors.safetensors'}: {problem}" in result.err
        assert "`nmt neighbors" in result.err
    assert nmt("neighbors", run).status == 0
    assert "neighbors.safetensors" not in nmt(*command).err


def test_keys_that_cannot_be_written_are_one_line(
    run: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = SafetensorError("Error while serializing: I/O error: File too large (os error 27)")
    monkeypatch.setattr("nmt.extras.neighbors.datastore.save_file", Mock(side_effect=error))
    text = f"nmt: {run / 'neighbors.safetensors'}: cannot be written ({error})\n"
    nmt.refuses(text, "neighbors", run)


def test_pairs_that_a_user_writes_stay(trained: Path, run: Path, nmt: Run) -> None:
    path = run / "neighbors.tsv"
    path.write_text("A dog.\tEin Hund.\n", encoding="utf-8")
    result = nmt("neighbors", run)
    assert (result.status, result.out.split("; ")[0]) == (0, f"{path}: 1 pairs")
    assert path.read_text(encoding="utf-8") == "A dog.\tEin Hund.\n"
    path.unlink()
    assert nmt("neighbors", run).status == 0
    assert path.read_bytes() == (trained / "neighbors.tsv").read_bytes()


@pytest.mark.parametrize("header", ["", f"{HEADER}\n"])
@pytest.mark.parametrize("rest", ["", "\n", "\n\n \n"])
def test_a_table_that_a_user_writes(tmp_path: Path, header: str, rest: str) -> None:
    path = tmp_path / "neighbors.tsv"
    path.write_bytes(f"{header}A dog.\tEin Hund.\n\nA cat.\tEine Katze.{rest}".encode())
    assert load_pairs(path) == [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze.")]


def test_pairs_are_stored_as_they_are(tmp_path: Path) -> None:
    """Also marks of quotation, which are no text where a spreadsheet wrote them."""
    path = tmp_path / "neighbors.tsv"
    stored = [
        ("A dog.", "Ein Hund."),
        ("「x」 \u2028", "ß"),
        ('"No," he said.', '"Nein", sagte er.'),
    ]
    save_pairs(path, stored)
    assert load_pairs(path) == stored
    pairs = [('He said "no".', "Er sagte nein."), ("A dog.", 'Der "Hund", ja.')]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([HEADER.split("\t"), *pairs])
    assert load_pairs(path) == pairs


NO_PAIR = "expected a source and a target with a tab between, found"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a, b\n", f", line 1: {NO_PAIR} 'a, b'"),
        (f"{HEADER}\na\tb\n\nc\n", f", line 4: {NO_PAIR} 'c'"),
        (f"{HEADER}\na\t\tc\n", f", line 2: {NO_PAIR} 'a\\t\\tc'"),
        (f"{HEADER}\n\tb\n", f", line 2: {NO_PAIR} '\\tb'"),
        ("", ": has no pairs; write a source, a tab and"),
        (f"{HEADER}\n", ": has no pairs; write a source, a tab and"),
        ("\ufeff\n\n", ": has no pairs; write a source, a tab and"),
    ],
)
def test_damaged_files(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "neighbors.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as error:
        load_pairs(path)
    assert str(error.value).startswith(f"{path}{problem}")
