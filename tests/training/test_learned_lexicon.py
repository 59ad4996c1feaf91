"""The lexicon with whole words: learned from subwords, used in training and search."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from nmt.config.load import load_config
from nmt.errors import CheckpointError
from nmt.model.lexical_bias import LexicalBias
from nmt.run.checkpoint import MODEL_FILE, load_weights, read_tensors
from nmt.run.folder import build_model, find_checkpoint, load_tokenizers, load_vocabularies
from nmt.text.vocabulary import Vocabulary
from nmt.training.learned_lexicon import LearnedLexicon
from tests import toy
from tests.conftest import Run

SIZES = {
    "embedding_size": 24,
    "encoder": {"hidden_size": 24},
    "decoder": {"hidden_size": 24},
    "dropout": 0.0,
}
SUBWORDS = {"kind": "bpe", "size": 36}  # few whole words
WORDS = {
    "dog": "Hund",
    "tree": "Baum",
    "river": "Fluss",
    "king": "König",
    "finds": "findet",
    "hears": "hört",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = {**SIZES, "lexical_bias": 8, "lexical_words": 50}
    return toy.train(tmp_path_factory.mktemp("words"), model=model, tokenizer=SUBWORDS)


def tokens_of(bias: LexicalBias, row: int, tgt: Vocabulary) -> set[str]:
    """The probable translations of a row of the lexicon."""
    likely = bias.ids[row][bias.probabilities[row] > 0.5]
    return set(tgt.tokens(likely.tolist()))


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
        assert expected <= tokens_of(bias, row, tgt), word
    assert any(len(src_tokenizer.split(word)) > 1 for word in WORDS)


def test_the_most_frequent_words_are_kept(run: Path) -> None:
    lexicon = LearnedLexicon.learn(load_config(run / "config.yaml", ["model.lexical_words=3"]))
    assert lexicon.words is not None
    whole = LearnedLexicon.learn(load_config(run / "config.yaml"))
    assert whole.words is not None
    assert len(whole.words.keys) == len({*toy.NOUNS, *toy.VERBS}) + 2  # and "the" and "."
    assert lexicon.words.keys.tolist() == whole.words.keys[:3].tolist()
    src, _ = load_vocabularies(run)
    the, stop = src.ids(["▁The", "."])
    bias = LexicalBias(len(src), 1000, 8, n_words=3)
    lexicon.fill(bias)
    rows = bias.rows(torch.tensor([[the, stop], [stop, stop]]))
    assert (rows >= len(src)).all()


def test_translate_with_it(run: Path, nmt: Run) -> None:
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text("utf-8").splitlines()]
    (entry,) = [event for event in events if event["event"] == "lexicon"]
    assert entry["words"] == 15
    sentences = ("The dog sees the tree.", "The king loves the river.")
    expected = nmt("translate", "--run", run, *sentences)
    for line, words in zip(
        expected.out.splitlines(), (("Hund sieht", "Baum."), ("König liebt", "Fluss.")), strict=True
    ):
        assert all(word in line for word in words)
    for options in (("--set", "decoding.precision=int8"), ("--run", run)):
        assert nmt("translate", "--run", run, *options, *sentences).out == expected.out


@pytest.mark.parametrize(
    ("name", "value"), [("ids", 10**6), ("ids", -1), ("words.lengths", -70), ("words.lengths", 65)]
)
def test_numbers_outside_of_the_vocabularies_are_refused(
    run: Path, tmp_path: Path, name: str, value: int
) -> None:
    model = build_model(run, load_config(run / "config.yaml"))
    tensors = read_tensors(find_checkpoint(run) / MODEL_FILE)
    tensors[f"lexical_bias.{name}"][-1] = value
    save_file(tensors, tmp_path / MODEL_FILE)
    with pytest.raises(
        CheckpointError,
        match=r"model.safetensors: its lexicon has numbers outside of the vocabularies; copy it",
    ):
        load_weights(tmp_path, model)
