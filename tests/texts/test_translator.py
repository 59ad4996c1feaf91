"""Texts of several sentences, with items and tags, in capitals or not."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.commands.translate import text_settings
from nmt.decoding.alignment import align
from nmt.decoding.translation import Translation
from nmt.errors import TextError
from nmt.texts.glossary import Glossary
from nmt.texts.items import signs
from nmt.texts.marked import Mark, Marked
from nmt.texts.translator import Settings, TextTranslator
from nmt.texts.warnings import CAPITALS, PLACED
from tests.texts.fakes import FakeTranslator, kind_of


def same(text: str) -> Sequence[str]:
    return [text]


def texts(
    translate: Callable[[str], Sequence[str]] = same,
    how: Settings | None = None,
    languages: Sequence[str] = ("en", "de"),
) -> TextTranslator:
    return TextTranslator(FakeTranslator(translate, languages), how)


def read_by(translator: TextTranslator) -> list[str]:
    assert isinstance(translator.sentence_translator, FakeTranslator)
    return translator.sentence_translator.read


# They stay as they are if the model copies them.
LINES = [
    "the dog is here",
    "The dog is here. Is the tree in Boston? A dog sees the tree!",
    "{name} is here. {name} and {name}",
    "The dog sees {name}, (%s) and “%d”.",
    "{a} {b} {c} {d} {e} {f} {g} {h} {i} {j} is here",
    "{0}% and file_%d.txt, #{id}; {a}/{b}: %s%s",
    "See https://example.org/a?b=1&c=2. The dog is here.",
    "Write to me@example.org on 2024-05-17, at 10:30!",
    "3,450.75 dogs and 1984 trees of version v2.3.1 (XR-200-B)",
    "<b>The dog</b> sees <a href=\"https://example.org\">the <i>tree</i></a>.",
    "<b>The dog is here. The tree</b> is here.",
    "The dog <br/> is here.<br/>",
    "a < b and c > d",
    "The dog 😀 is here! 😀 Is the tree here? 😀",
    "dogs &amp; trees &APP_NAME; &nbsp;",
    "The dog is here.\\n The tree is here.\\n",
    "{n, plural, one {# dog} other {# dogs}} here",
    "Type <name> here",
    "`git pull` and {{ user.name | upper }}",
    "{name}",
    "{name}: %s – 1984",
    "さようなら、{name}さん。",
    "{a}{b} is here",
    "  two  spaces {name}  here ",
    "",
]  # fmt: skip


ITEMS = "{name} %s %(user)s https://example.org/1984 3,450.75 1984 v2.3.1 XR-200-B @ann {a}/{b}"
WORDS = "the dog sees a tree . and <b>it</b> here! Tom 19"


def confused(text: str) -> list[str]:
    """Loses, repeats, inflects and exchanges words."""
    random.seed(text)
    words = text.split()
    return [
        " ".join(random.sample(words, len(words))),
        " ".join(words[::2]),
        " ".join([*words, *words]),
        " ".join(f"{word}s" for word in words),
        "",
    ][random.randrange(5) :]


@settings(max_examples=40)
@given(st.lists(st.sampled_from([*ITEMS.split(), *WORDS.split()]), max_size=15), st.integers(1, 3))
def test_each_item_is_there_as_often_as_in_the_source(words: list[str], n: int) -> None:
    line = " ".join(words)
    for best in CONFUSED.translate_n_best([line], n)[0]:
        for item in signs(line):
            assert best.text.count(item.written) == line.count(item.written)
        assert best.source == line
        columns, rows = best.attention_labels
        assert best.attention.shape == (len(rows), len(columns))
        assert len(best.token_log_probs) == len(rows)
        assert sum(best.token_log_probs) == pytest.approx(best.log_prob)


CONFUSED = texts(confused)


def test_a_plain_sentence_is_the_translation_of_the_sentence() -> None:
    translator = texts(lambda text: [text.upper(), text])
    [best] = translator.translate_n_best(["the dog is here"], 2)
    assert [each.text for each in best] == ["THE DOG IS HERE", "the dog is here"]
    assert best[0].model_input is None
    assert not best[0].facts


def test_sentences_are_joined() -> None:
    translator = texts(
        {"The dog.": ["Der Hund.", "Ein Hund."], "A tree?": ["Ein Baum?"]}.__getitem__
    )
    first, second = translator.translate_n_best(["The dog.  A tree?"], 2)[0]
    assert (first.text, second.text) == ("Der Hund.  Ein Baum?", "Ein Hund.  Ein Baum?")
    assert first.facts["sentences"] == [
        {"source": "The dog.", "text": "Der Hund."},
        {"source": "A tree?", "text": "Ein Baum?"},
    ]
    assert first.src_tokens == ("The", "dog", "￭.", "A", "tree", "￭?")
    assert align(first, translator.sentence_translator.tokenizers) == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    # <eos> of the first sentence counts with the word before it.
    assert first.token_log_probs == (-0.5, -1.0, -1.5 - 2.0, -0.5, -1.0, -1.5, -2.0)
    assert first.score == -2.0


def test_a_text_of_very_many_words_has_no_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.texts.join.MAX_WEIGHTS", 20)
    translator = texts()
    best = translator.translate(["The dog. A tree?"])[0]
    assert not best.has_attention
    assert align(best, translator.sentence_translator.tokenizers) == []


@pytest.mark.parametrize(
    "line", ["The dog.The tree.", "The dog<p>The tree", "The dog.<br>The tree."]
)
def test_the_words_of_sentences_that_touch(line: str) -> None:
    translator = texts()
    (best,) = translator.translate([line])
    assert len(best.sentences) == 2
    pairs = align(best, translator.sentence_translator.tokenizers)
    assert {column for column, _ in pairs} == {*range(len(line.split()))}
    assert {row for _, row in pairs} == {*range(len(best.text.split()))}


def test_words_beside_tags_are_known() -> None:
    translator = texts()
    assert translator.warnings(translator.translate(["the <b>dog</b> sees {tree}"])[0]) == []


@pytest.mark.parametrize(
    ("line", "languages", "expected"),
    [
        ("今日は。明日は！", ("ja", "en"), "今日は。 明日は！"),
        ("The dog. The tree!", ("en", "zh"), "The dog.The tree!"),
        ("今日は。明日は！", ("ja", "zh"), "今日は。明日は！"),
    ],
)
def test_spaces_are_those_of_the_target_language(
    line: str, languages: Sequence[str], expected: str
) -> None:
    assert texts(languages=languages).translate([line])[0].text == expected


def loses_names(text: str) -> list[str]:
    return [re.sub("Tom|Boston|Mary|Ken", "er", text)]


def exchanges_names(text: str) -> Sequence[str]:
    first, second = re.findall("Tom|Boston", text)
    return [f"In {second} a {first} tree."]


def spoils_numbers(text: str) -> Sequence[str]:
    return [re.sub(r"\b([0-9]|1[0-3])\b", "15", text)]


def adds_so(text: str) -> Sequence[str]:
    return [f"so {text.strip('.:')}."]


@pytest.mark.parametrize(
    ("translate", "line", "expected", "warnings"),
    [
        *((same, line, None, ()) for line in LINES),
        # Tags between two lines stay.
        (
            lambda text: [text.upper()],
            "<p>The dog</p><p>A tree<br>Is it?</p>",
            "<p>THE DOG</p><p>A TREE<br>IS IT?</p>",
            (),
        ),
        # A lost item stands where attention was, and leaves no space at the start.
        (loses_names, "The dog sees {name} in {place}.", None, (PLACED,)),
        (lambda _: [""], "{a} is here", "{a}", (PLACED,)),
        # Placeholders of the next value keep their order.
        (exchanges_names, "%d of %s", "In %d a %s tree.", ()),
        (exchanges_names, "{:.1f}% of {}", "In {:.1f}% a {} tree.", ()),
        (exchanges_names, "%(a)s of %(b)s", "In %(b)s a %(a)s tree.", ()),
        # Wrong small numbers are translated as items.
        (spoils_numbers, "The dog is 1 of 5.", None, ()),
        (spoils_numbers, "In 12 trees, {name}", None, ()),
        (spoils_numbers, "<b>Tom</b> sees 13", None, ()),
        (lambda text: [text.replace("2", "two")], "2 dogs", "two dogs", ()),
        # Numbers of lists and final signs stay where they are.
        (adds_so, "1. <b>The</b> dog. 2. A tree.", "1. so <b>The</b> dog. 2. so A tree.", ()),
        (adds_so, "- the dog", "- so the dog.", ()),
        (adds_so, "a) the dog", "a) so the dog.", ()),
        (adds_so, "Is it...", "so Is it...", ()),
        (adds_so, "{a}:", None, ()),
        (adds_so, "a\tthe dog:\tdog", "so a.\tso the dog:\tso dog.", ()),
        (adds_so, "> the dog:", "> so the dog:", ()),
    ],
)
def test_what_a_model_copies_and_what_it_spoils(
    translate: Callable[[str], Sequence[str]],
    line: str,
    expected: str | None,
    warnings: tuple[str, ...],
) -> None:
    """expected: None for the line itself."""
    (best,) = texts(translate).translate([line])
    assert (best.text, best.source, best.warnings) == (expected or line, line, warnings)


@pytest.mark.parametrize(
    ("line", "expected", "read"),
    [
        # Capitals are read in their usual case.
        (
            "THE DOG SEES TOM IN {NAME} AND NASA. IS A TREE HERE?",
            "THE DOG SEES TOM IN {NAME} AND NASA. IS A TREE HERE?",
            ["Is a tree here?", "The dog sees Tom in Boston and NASA."],
        ),
        (
            "The Dog Sees A Tree In Boston",
            "The dog sees a tree in Boston",
            ["The dog sees a tree in Boston"],
        ),
        # Stand-ins are no words of the sentence.
        (
            "Tom sees %s and 250GB in 19 trees.",
            "Tom sees %s and 250GB in 19 trees.",
            ["Tom sees Boston and 250GB in 19 trees.", "Tom sees Boston and Mary in 19 trees."],
        ),
        # What has no words is copied; elements with signs between them are a list.
        ("{a}: <b>%s</b>", "{a}: <b>%s</b>", []),
        (
            "<a>The dog</a> • <a>A tree</a> | <b>Tom</b>",
            "<a>The dog</a> • <a>A tree</a> | <b>Tom</b>",
            ["The dog", "A tree", "Tom"],
        ),
        # Signs between plain words divide nothing: "words divided by | (without spaces)".
        ("Dogs | A tree", "Dogs | A tree", ["Dogs | A tree"]),
        # Lines with their ends as two signs.
        ("a dog | the tree", "a dog | the tree", ["a dog | the tree"]),
        ("The dog\\n- A tree\\tTom", "The dog\\n- A tree\\tTom", ["The dog", "A tree", "Tom"]),
        ("The dog--", "The dog--", ["The dog--"]),
        (
            "{% if x %}The dog{% endif %} sleeps",
            "{% if x %}The dog{% endif %} sleeps",
            ["The dog sleeps"],
        ),
        ("1. The dog. 2. A tree.", "1. The dog. 2. A tree.", ["The dog.", "A tree."]),
    ],
)
def test_what_a_model_reads(line: str, expected: str, read: list[str]) -> None:
    translator = texts()
    (best,) = translator.translate([line])
    assert (best.text, read_by(translator)) == (expected, read)
    assert CAPITALS not in translator.warnings(best)


def test_a_text_that_is_a_term_needs_no_model() -> None:
    translator = texts().with_glossary(Glossary.of({"big dog|dogs": "große Köter"}))
    found = translator.translate(["big dog", "Big dog", "DOGS "])
    assert [each.text for each in found] == ["große Köter", "Große Köter", "GROSSE KÖTER"]
    assert not read_by(translator)
    assert found[0].attention.shape == (3, 3)


def test_equal_sentences_at_the_end_are_two() -> None:
    """Though they share a translation."""
    (best,) = texts().translate(["A dog. The tree. The tree."])
    assert align(best, texts().sentence_translator.tokenizers) == [(i, i) for i in range(6)]
    alone = texts().translate(["The tree."])[0].token_log_probs
    end = [*alone[:-2], alone[-2] + alone[-1], *alone]
    assert best.token_log_probs[-len(end) :] == pytest.approx(end)


def test_other_stand_ins_are_tried() -> None:
    translator = texts(lambda text: [text.replace("Tom", "Thomas"), text.replace("Boston", "B")])
    best = translator.translate(["The dog sees {name}."])[0]
    assert (best.text, best.warnings) == ("The dog sees {name}.", ())
    assert best.tokens == ("The", "dog", "sees", "{name}", "￭.")
    assert best.model_input == "The dog sees Tom."


class WithoutAttention(FakeTranslator):
    def _translation(self, source: str, text: str) -> Translation:
        return replace(super()._translation(source, text), attention=np.zeros((5, 5), np.float32))


def test_without_attention_items_keep_their_share_of_the_way() -> None:
    translator = TextTranslator(WithoutAttention(lambda _: ["a b c d"]))
    assert translator.translate(["a tree in {name}"])[0].text == "a b c d {name}"


def test_settings() -> None:
    line = "The dog is 🙂. The {tree} is XYZ."
    assert read_by(plain := texts(how=Settings(split=False, keep=None))) == []
    assert plain.translate([line, "THE DOG SEES A TREE"])[0].model_input is None
    assert read_by(plain) == [line, "THE DOG SEES A TREE"]
    kept = texts(how=Settings(split=False, keep=(re.compile("XYZ"),)))
    kept.translate([line])
    assert read_by(kept)[0] == "The dog is. The Tom is Boston."


def test_a_prefix_begins_a_sentence() -> None:
    translator = texts()
    translator.translate_n_best(["The {dog}. Is it?"], 1, [""])
    assert read_by(translator) == ["The {dog}. Is it?"]


def test_an_error_names_the_text() -> None:
    with pytest.raises(TextError, match="text 3 is too long") as error:
        texts().translate(["The dog. Is it?", "Tom", "fails"])
    assert error.value.index == 2


def test_a_glossary_for_one_request() -> None:
    translator = texts()
    other = translator.with_glossary(Glossary.of({"dog": "Köter"}))
    assert other.settings is translator.settings
    assert other.sentence_translator is translator.sentence_translator
    assert other.glossary is not translator.glossary


def test_marked_texts() -> None:
    source = Marked(
        "The dog. Is it in  or  ?",
        (
            Mark(0, "**", "open"),
            Mark(7, "**", "close"),
            Mark(18, "`ls`", "item"),
            Mark(22, "<x/>", "item"),
            Mark(24, "<br/>", "empty"),
        ),
    )
    translator = texts()
    ((result,), same) = translator.translate_marked([source, source])
    assert same[0] is result
    translation, marked = result
    assert marked == source
    assert translation.text == "**The dog**. Is it in `ls` or <x/> ?<br/>"
    assert read_by(translator) == ["The dog.", "Is it in Tom or Boston ?"]


def test_options() -> None:
    assert text_settings(no_split=True, no_protect=True, keep=None) == Settings(False, None)
    with pytest.raises(typer.BadParameter, match=r"--keep '\(': no regular expression"):
        text_settings(no_split=False, no_protect=False, keep=["("])
    with pytest.raises(typer.BadParameter, match="--no-protect"):
        text_settings(no_split=False, no_protect=True, keep=["x"])


@pytest.mark.parametrize(
    "line",
    [
        '<a href="{u}">%(url)s</a> is here',
        "<b>{name}</b> sees <i><b>{dog}</b></i>",
    ],
)
def test_an_element_keeps_its_item(line: str) -> None:
    """Though the model turns the sentence around."""
    translator = texts(lambda text: [" ".join(text.split()[::-1])])
    result = translator.translate([line])[0].text
    assert all(piece in result for piece in re.findall(r"<a.*</a>|<b>.*?</b>", line))


def test_a_name_that_the_model_loses_is_translated_as_another() -> None:
    def loses(text: str) -> Sequence[str]:
        return [text.replace("Yale", "Yagel").replace("Roosevelt", "Roose")]

    translator = texts(loses)
    translator._kind_of = kind_of
    lines = ["The dog is in Yale.", "Roosevelt sees the GIMP", "The <b>Yale</b> is in Yale", "A %s"]
    assert [each.text for each in translator.translate(lines)] == lines
    assert read_by(translator)[3:] == [
        "A %s", "The dog is in Tom.", "Tom sees the GIMP", "The Tom is in Boston"
    ]  # fmt: skip
    # A term is no name.
    with_term = translator.with_glossary(Glossary.of({"Yale": "Jale"}))
    assert with_term.translate([lines[0]])[0].text == "The dog is in Jale."


def test_words_in_capitals_are_no_names() -> None:
    translator = texts(lambda text: [text.replace("oysters", "clams")])
    translator._kind_of = lambda _: "new"
    assert translator.translate(["THE DOG SEES OYSTERS"])[0].text == "THE DOG SEES CLAMS"
    # German writes all nouns so.
    german = texts(lambda text: [text.replace("oysters", "clams")], languages=("de", "en"))
    german._kind_of = lambda _: "new"
    assert german.translate(["the dog sees Sea-oysters"])[0].text == "the dog sees Sea-clams"
