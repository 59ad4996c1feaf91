"""Prepares real data and checks the splits independently of the splitter. Skipped where the data is
missing.
"""

from pathlib import Path

import pytest

from nmt.commands import prepare
from nmt.config.load import load_config
from nmt.config.schema import Config
from nmt.data.corpus import Corpus, read_sentences
from nmt.data.manifest import load_manifest
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary

pytestmark = pytest.mark.slow


def letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


@pytest.fixture(scope="module")
def tatoeba(root: Path, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("tatoeba")
    sets = [
        f"data.source.path={shared_data / 'tatoeba' / 'deu-eng.zip'}",
        f"data.prepared={folder}",
    ]
    config = load_config(root / "configs" / "tatoeba.yaml", sets)
    prepare.run(config, progress=False)
    return config


def test_tatoeba_shares_no_sentence_between_its_splits(tatoeba: Config) -> None:
    config, folder = tatoeba, tatoeba.prepared_folder
    manifest = load_manifest(folder)
    counts = manifest["counts"]
    assert counts["read"] == 166_813 == counts["kept"] + sum(counts["dropped"].values())
    assert [split["pairs"] for split in manifest["splits"].values()] == [
        counts["kept"] - 4000,
        2000,
        2000,
    ]
    assert all(shared == 0 for both in manifest["overlap"].values() for shared in both.values())
    assert manifest["naive_leak"] > 0.3
    assert manifest["ceiling"]["score"] > 99.99
    corpus = Corpus.load(folder, "train")
    for side, language, sequences in (("src", "en", corpus.src), ("tgt", "de", corpus.tgt)):
        vocabulary = Vocabulary.load(folder / f"{side}.vocab.txt")
        tokenizer = load_tokenizer(
            config.tokenizer, language, "src" if side == "src" else "tgt", folder
        )
        train = {
            letters(tokenizer.join(vocabulary.tokens(sequences[i].tolist())))
            for i in range(len(sequences))
        }
        dev, test = (
            {letters(line) for line in read_sentences(folder, split, side)} - {""}
            for split in ("dev", "test")
        )
        assert len(train) > 100_000
        assert not train & dev
        assert not train & test
        assert not dev & test
