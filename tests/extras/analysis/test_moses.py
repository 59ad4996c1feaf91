"""nmt.extras.analysis.moses: text is split as the perl scripts of Moses split it."""

import gzip
from pathlib import Path

import pytest
import sacremoses

from nmt.errors import DataError
from nmt.evaluation.scores import score_tokenized
from nmt.extras.analysis.moses import check_language, score_moses, split_words


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("de", "Ein T-Shirt, z.B. rot (neu).", "ein t-shirt , z.b. rot ( neu ) ."),
        ("de", "„Komm“, sagte er – und kam.", "&quot; komm &quot; , sagte er - und kam ."),
        ("de", "Dr. Wu zahlt 3,50 € für 10 % mehr …", "dr. wu zahlt 3,50 € für 10 % mehr ..."),
        ("en", "The man's dog isn’t here.", "the man &apos;s dog isn &apos;t here ."),
        ("en", 'He said "stop".', "he said &quot; stop . &quot;"),
        ("de", "", ""),
    ],
)
def test_texts_are_lowercased_normalized_and_split(language: str, text: str, words: str) -> None:
    assert split_words([text], language) == [words]


def test_multi30k_has_the_published_number_of_tokens_and_characters(shared_data: Path) -> None:
    """12,103 is the reference length in published scores; 70,777 is the size in characters of the
    data set's tokenized file.
    """
    raw = (
        gzip.decompress((shared_data / "multi30k" / "test_2016_flickr.de.gz").read_bytes())
        .decode("utf-8")
        .splitlines()
    )
    lines = split_words(raw, "de")
    assert sum(len(line.split()) for line in lines) == 12_103
    assert sum(len(line) + 1 for line in lines) == 70_777


def test_the_score_is_that_of_the_words_and_its_signature_says_how_they_were_made() -> None:
    hypotheses, references = (
        ["Ein Mann im roten T-Shirt läuft."],
        ["ein Mann in einem roten T-Shirt läuft ."],
    )
    bleu = score_moses(hypotheses, [references], "de")
    words = score_tokenized(
        ["ein mann im roten t-shirt läuft ."],
        [["ein mann in einem roten t-shirt läuft ."]],
        "",
        lowercase=True,
    )
    assert (bleu.name, bleu.value) == ("Moses BLEU", words.value)
    assert "bs:1000|seed:12345|case:lc|eff:no|tok:none" in bleu.signature
    settings = "lower-case, normalize-punctuation, Moses tokenizer de, no -a"
    assert bleu.signature.endswith(f"|words:{settings}, sacremoses {sacremoses.__version__}")
    assert bleu.interval is not None
    with pytest.raises(DataError, match=r"^xx: not a language of the Moses tokenizer"):
        check_language("xx")
