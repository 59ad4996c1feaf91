"""A user's translation memory: exact matches of texts and sentences, and similar pairs."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.data.corpus import encode_pairs
from nmt.data.reading import Pair
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.extras.neighbors import memory as neighbors_memory
from nmt.extras.neighbors.keys import NeighborsConfig
from nmt.extras.neighbors.model import NeighborModel, SimilarSentences
from nmt.texts.glossary import Glossary
from nmt.texts.marked import Mark, Marked
from nmt.texts.translator import TextTranslator
from tests import toy
from tests.conftest import Run
from tests.texts.fakes import FakeTranslator
from tests.texts.test_glossary import TEXTS, dictionary_translator, with_model
from tests.texts.test_glossary import translate as terms

Translate = Callable[..., list[dict[str, Any]]]
SIMILAR = "The dog sees the dog"  # to pairs of the memory


class FakeMemory:
    """Knows some texts."""

    def exact(self, text: str) -> Translation | None:
        known = {"The dog.": "Bello!", "The tree": "Der B."}
        target = known.get(text.strip())
        return Translation(text, target, is_known=True) if target else None

    def similar(self, _: Translation) -> Mapping[str, Any]:
        return {}


def test_documents_keep_what_stands_around_a_known_text() -> None:
    around = (Mark(0, "<b>", "open"), Mark(8, "</b>", "close"))
    fake = FakeTranslator(lambda text: [text.upper()])
    translator = TextTranslator(fake, memory=FakeMemory())
    inside = Marked("The tree", (Mark(4, "<br/>", "empty"),))
    before = Marked(" The tree", (Mark(0, "<br/>", "empty"),))
    found = translator.translate_marked([Marked("The tree", around), inside, before])
    expected = ["<b>Der B.</b>", "THE <br/>TREE", "<br/> Der B."]
    assert [best.marked.written for (best,) in found] == expected
    assert found[0][0].translation.text == "<b>Der B.</b>"


def test_sentences_of_a_text_are_known_as_they_stand_but_for_what_is_around_them() -> None:
    fake = FakeTranslator(lambda text: ["..."])
    texts = ["The dog. A tree sees.", "the dog.", "{x} The dog.", "The dog. The dog."]
    edges = ["1. The dog.", "<b>The dog.</b>", "😀 The dog.", "The tree:"]
    found = TextTranslator(fake, memory=FakeMemory()).translate([*texts, *edges])
    assert [each.text for each in found[:1]] == ["Bello! ..."]
    assert {"A tree sees.", "the dog."} == {text for text in fake.read if "The dog" not in text}
    assert [each.is_known for each in found] == [*[False] * 3, *[True] * 5]
    expected = ["1. Bello!", "<b>Bello!</b>", "😀 Bello!", "Der B.:"]
    assert [each.text for each in found[4:]] == expected


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """With a name that YAML and the shell read otherwise."""
    pairs = [
        *toy.sentence_pairs()[:40],
        ("The dog {x}, THE <b>5</b> dogs.  Yes.", "Hunde."),
        ("The man.", "Der Kerl."),
        *[("The man.", "Der Mann.")] * 2,
    ]
    return toy.write_table(tmp_path / "it's a = #1: [ä😀] memory.tsv", pairs)


@pytest.fixture
def translate(folder: Path, memory: Path, nmt: Run) -> Translate:
    """JSON for each text, with a memory."""

    def run(*arguments: str) -> list[dict[str, Any]]:
        command = ("translate", "--run", folder / "run", "--memory", memory, "--json")
        return [json.loads(line) for line in nmt.prints(*command, *arguments).splitlines()]

    return run


def test_exact_matches(translate: Translate) -> None:
    texts = "The dog {x}, THE  <b>5</b> dogs. Yes.", "The man."
    found = translate("--n-best", "2", *texts)
    assert [each["text"] for each in found] == ["Hunde.", "Der Mann."]
    assert [len(each["n_best"]) for each in found] == [1, 1]
    pair = {"source": "The man.", "translation": "Der Mann.", "similarity": 1.0}
    assert found[1]["memory"] == {"match": "exact", "pairs": [pair]}
    assert [each["warnings"] for each in found] == [[], []]


def test_similar_pairs_change_the_translation_and_are_named(translate: Translate) -> None:
    (found,) = translate(SIMILAR)
    (same,) = translate("The dog sees the dog.")
    assert same["memory"]["match"] == "exact"
    assert found["memory"]["match"] == "similar"
    pairs = found["memory"]["pairs"]
    assert (len(pairs), pairs[0]["source"]) == (3, "The dog sees the dog.")
    similarities = [pair["similarity"] for pair in pairs]
    assert similarities == sorted(similarities, reverse=True)
    assert 0 < similarities[-1] <= similarities[0] < 1


def test_without_similar_pairs_nothing_changes(folder: Path, tmp_path: Path, nmt: Run) -> None:
    memory = toy.write_table(
        tmp_path / "memory.tsv", [("Good evening.", "Guten Abend."), ("Hi", "He")]
    )
    command = ("translate", "--run", folder / "run", "--json", "The king sees the river")
    plain = nmt(*command)
    assert nmt(*command, "--memory", memory).out == plain.out
    assert nmt(*command, "--set", "decoding.neighbors.weight=0.5") == plain


def test_the_option_is_short_for_keys_and_what_a_user_sets_counts_more(
    folder: Path, memory: Path, translate: Translate, nmt: Run, tmp_path: Path
) -> None:
    name = json.dumps(str(memory), ensure_ascii=False)
    keys = [f"memory={name}", "pairs=16", "weight=0.8"]
    sets = [word for key in keys for word in ("--set", f"decoding.neighbors.{key}")]
    command = ("translate", "--run", folder / "run", "--json", SIMILAR, "The man.")
    assert [*map(json.loads, nmt(*command, *sets).out.splitlines())] == translate(*command[4:])
    (unweighted,) = translate("--set", "decoding.neighbors.weight=0", SIMILAR)
    (without, _) = map(json.loads, nmt(*command).out.splitlines())
    assert unweighted["text"] == without["text"]
    message = "nmt: decoding.neighbors.memory needs decoding.neighbors.pairs, such as 16\n"
    nmt.refuses(message, *command, *sets[:2])
    (file := tmp_path / "two").write_text(f"{SIMILAR}\nThe man.\n", encoding="utf-8")
    result = nmt("evaluate", folder / "run", "--sources", file, "--references", file, *sets)
    assert "nmt: 1 of 2 sentences stand in the memory: the scores are higher" in result.err


def dictionary_with(pairs: Sequence[Pair]) -> Translator:
    """A dictionary that looks at pairs."""
    translator = dictionary_translator()
    model = translator.model
    encoded = encode_pairs(pairs, translator.tokenizers, translator.vocabularies)
    similar = SimilarSentences(encoded.src, len(translator.src_vocabulary))
    options, texts = NeighborsConfig(pairs=1), Counter(pairs)
    return with_model(translator, NeighborModel(model, encoded, similar, options, texts=texts))


def test_terms_bias_a_model_that_looks_at_pairs() -> None:
    translator, glossary = (
        dictionary_with([("Good evening.", "Abend.")]),
        Glossary.of({"dog": "Baum"}),
    )
    ((best,),) = terms(glossary, translator, TEXTS[:1], 1)
    assert (best.text, best.replaced) == ("Der Baum sieht den König.", ())


def test_unknown_words_are_not_similar() -> None:
    translator = dictionary_with([("Supper", "Abendbrot"), ("The king", "Der König")])
    known = neighbors_memory.memory(translator)
    assert known is not None
    assert [known.similar(each) for each in translator.translate(["Breakfast"])] == [{}]


def test_files_and_options_that_do_not_fit(folder: Path, tmp_path: Path, nmt: Run) -> None:
    command = ("translate", "--run", folder / "run", "--memory", tmp_path / "a.tsv")
    nmt.refuses("a.tsv: no such file", *command, "A dog.")
    toy.write_table(tmp_path / "a.tsv", toy.sentence_pairs())
    nmt.refuses("--score does not search; remove --memory", *command, "--score", "a", status=2)
