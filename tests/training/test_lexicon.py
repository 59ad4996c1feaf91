"""The lexicon that the word aligner learns, in training and search."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from nmt.config.load import load_config
from nmt.errors import CheckpointError
from nmt.model.lexical_bias import LexicalBias
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import find_checkpoint, load_tokenizers, load_vocabularies
from nmt.run.weights import build_model, load_weights
from nmt.text.vocabulary import EOS
from nmt.training.lexicon import LearnedLexicon, Table
from nmt.training.loop import SINGLE_PROCESS
from nmt.training.start import start_training
from tests import toy
from tests.conftest import Run

SIZES = {"embedding_size": 24, "encoder": {"hidden_size": 24}, "decoder": {"hidden_size": 24}}
SUBWORDS = {"kind": "bpe", "size": 36}  # few whole words
WORDS = dict([*toy.NOUNS[:2], *toy.NOUNS[4::2], *toy.VERBS[2::3]])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a lexicon of whole words, learned from subwords."""
    model = {**SIZES, "dropout": 0.0, "lexical_bias": 8, "lexical_words": 50}
    return toy.train(tmp_path_factory.mktemp("words"), model=model, tokenizer=SUBWORDS)


def test_a_word_has_the_subwords_of_its_translation(run: Path) -> None:
    config, (src, tgt) = load_config(run / "config.yaml"), load_vocabularies(run)
    src_tokenizer, tgt_tokenizer = load_tokenizers(run, config)
    model = build_model(run, config)
    load_weights(find_checkpoint(run), model)
    bias = model.lexical_bias
    assert bias is not None
    for word, translation in WORDS.items():
        rows = bias.rows(torch.tensor([src.ids(src_tokenizer.split(f"The {word}."))]))[0]
        (row,) = set(rows[rows >= len(src)][1:-1].tolist())
        expected = set(tgt_tokenizer.split(f"Der {translation}.")) - set(
            tgt_tokenizer.split("Der .")
        )
        likely = bias.ids[row][bias.probabilities[row] > 0.5]
        assert expected <= set(tgt.tokens(likely.tolist())), word
    assert any(len(src_tokenizer.split(word)) > 1 for word in WORDS)


def test_the_most_frequent_words_are_kept(run: Path) -> None:
    lexicon = LearnedLexicon.learn(load_config(run / "config.yaml", ["model.lexical_words=3"]))
    whole = LearnedLexicon.learn(load_config(run / "config.yaml"))
    assert lexicon.words is not None
    assert whole.words is not None
    assert len(whole.words.keys) == len({*toy.NOUNS, *toy.VERBS}) + 2  # and "the" and "."
    assert lexicon.words.keys.tolist() == whole.words.keys[:3].tolist()
    src, _ = load_vocabularies(run)
    the, stop = src.ids(["▁The", "."])
    bias = LexicalBias(len(src), 1000, 8, n_words=3)
    lexicon.fill(bias)
    rows = bias.rows(torch.tensor([[the, stop], [stop, stop]]))
    assert (rows >= len(src)).all()


def test_a_model_has_its_lexicon_before_it_goes_to_a_device(run: Path, tmp_path: Path) -> None:
    config = load_config(run / "config.yaml", [f"training.start_from={run}"])
    # As on a GPU, an operation that mixes tensors of two devices fails.
    meta = torch.device("meta")
    training = start_training(config, tmp_path / "run", meta, SINGLE_PROCESS, resume=False)
    assert {tensor.device for tensor in training.model.state_dict().values()} == {meta}


def test_an_earlier_lexicon_counts_as_links() -> None:
    table = Table(
        torch.tensor([[7, 8], [9, 0], [7, 8], [0, 0]]),
        torch.tensor([[0.8, 0.2], [1.0, 0.0], [0.6, 0.4], [0.0, 0.0]]),
        torch.tensor([30.0, 10.0, 2.0, 0.0]),
    )
    ids = torch.tensor([[8, 9, 4], [9, 6, 0], [0, 0, 0], [5, 6, 0]])
    probabilities = torch.tensor([[0.5, 0.3, 0.1], [0.5, 0.4, 0], [0, 0, 0], [0.7, 0.1, 0]])
    after = table.with_prior(ids, probabilities)
    assert after.ids.tolist() == [[7, 8], [9, 6], [7, 8], [5, 6]]
    expected = [[0.6, 0.275], [0.75, 0.2], [0.6, 0.4], [0.7, 0.1]]
    np.testing.assert_allclose(after.probabilities, expected, rtol=1e-6)


@pytest.mark.parametrize("n_new", [0, 3])  # tokens that the trained one did not know
def test_a_trained_lexicon_is_a_prior(run: Path, n_new: int) -> None:
    config = load_config(run / "config.yaml")
    learned, (src, tgt) = LearnedLexicon.learn(config), load_vocabularies(run)
    assert learned.words is not None
    known, other = learned.words.keys[:2], learned.words.keys[:1] + 1
    n_old = len(src) - n_new
    trained, wider = (
        LexicalBias(n, len(tgt), size, n_words)
        for n, size, n_words in ((n_old, 2, 4), (len(src), 8, 50))
    )
    trained.fill(torch.zeros(n_old, 2, dtype=torch.long), torch.zeros(n_old, 2))
    trained.ids[10], trained.probabilities[10] = torch.tensor([7, 8]), torch.tensor([0.5, 0.4])
    rows = torch.tensor([[7, 8]]).repeat(3, 1), torch.tensor([[0.3, 0.2]] * 3)
    trained.fill_words([*src][:n_old], torch.cat([known, other]), *rows)
    figures = learned.after(trained).fill(wider)
    assert figures["words"] == len(learned.words.keys) + 1, "one is of the trained lexicon alone"
    earlier = (part[:n_old] for part in (trained.ids, trained.probabilities))
    padded = (torch.nn.functional.pad(part, (0, 0, 0, n_new)) for part in earlier)
    expected = learned.table.with_prior(*padded)
    special = torch.arange(len(src)) == EOS
    assert torch.equal(wider.ids[: len(src)][~special], expected.ids[~special])
    assert not torch.equal(wider.ids[10], learned.table.ids[10])
    others = ~special & (torch.arange(len(src)) != 10)
    here = learned.table.probabilities[others]
    np.testing.assert_allclose(wider.probabilities[: len(src)][others], here, rtol=1e-6)
    places = len(src) + torch.searchsorted(wider.word_keys, learned.words.keys)
    ids, probabilities, counts = learned.words.table
    first = Table(ids[:2], probabilities[:2], counts[:2]).with_prior(*(part[:2] for part in rows))
    assert torch.equal(wider.ids[places[:2]], first.ids)
    np.testing.assert_allclose(wider.probabilities[places[2:]], probabilities[2:], rtol=1e-6)
    (place,) = len(src) + torch.searchsorted(wider.word_keys, other)
    assert wider.ids[place].tolist() == [7, 8, *[0] * 6]
    assert wider.probabilities[place].tolist() == pytest.approx([0.3, 0.2, *[0] * 6])
    without = LexicalBias(n_old, len(tgt), 2)
    without.fill(trained.ids[:n_old], trained.probabilities[:n_old])
    assert learned.after(without).fill(wider)["words"] == len(learned.words.keys)


def test_translate_with_it(run: Path, nmt: Run) -> None:
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text("utf-8").splitlines()]
    (entry,) = [event for event in events if event["event"] == "lexicon"]
    assert entry["words"] == 15
    learned = load_file(find_checkpoint(run) / MODEL_FILE)["lexical_bias.probabilities"]
    of_tokens = learned[: len(load_vocabularies(run)[0])].gt(0).sum()
    assert entry["translations"] == int(of_tokens) - 1  # <eos> translates into itself
    sentences = ("The dog sees the tree.", "The king loves the river.")
    all_words = (("Hund sieht", "Baum."), ("König liebt", "Fluss."))
    for options in ((), ("--run", run), ("--set", "decoding.precision=int8")):
        lines = nmt("translate", "--run", run, *options, *sentences).out.splitlines()
        for line, words in zip(lines, all_words, strict=True):
            assert all(word in line for word in words)


@pytest.mark.parametrize(
    ("name", "value"), [("ids", 10**6), ("ids", -1), ("words.lengths", -70), ("words.lengths", 65)]
)
def test_numbers_outside_of_the_vocabularies_are_refused(
    run: Path, tmp_path: Path, name: str, value: int
) -> None:
    model = build_model(run, load_config(run / "config.yaml"))
    tensors = load_file(find_checkpoint(run) / MODEL_FILE)
    tensors[f"lexical_bias.{name}"][-1] = value
    save_file(tensors, tmp_path / MODEL_FILE)
    with pytest.raises(
        CheckpointError,
        match=r"model.safetensors: its lexicon has numbers outside of the vocabularies; copy it",
    ):
        load_weights(tmp_path, model)
