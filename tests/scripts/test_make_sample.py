"""The sample corpus: its grammar against sentences written by hand, its form, and its contents."""

import importlib.util
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from scripts.sample_grammar import (
    CAN,
    LIKE,
    MUST,
    PRONOUNS,
    WANT,
    Case,
    Clause,
    NounPhrase,
    Object,
    Pair,
    Verb,
    Words,
    after,
    ask,
    english_infinitive,
    finish,
    german_imperative,
    german_infinitive,
    name,
    prepositional,
    say,
    stand_in,
)
from tests.conftest import ROOT

SCRIPT = ROOT / "scripts" / "make_sample.py"
SAMPLE = ROOT / "data" / "sample" / "sample.tsv"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sample", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script()
PAIRS: list[Pair] = [
    (line.split("\t")[0], line.split("\t")[1])
    for line in SAMPLE.read_text(encoding="utf-8").splitlines()
]


# --- The grammar
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
# ----------------------------------------------------------------------------------------------------------


def phrase(words: str, determiner: str = "the", plural: bool = False) -> NounPhrase:
    """ "old man": the noun with its adjective, from the lexicon."""
    adjective, _, noun = words.rpartition(" ")
    chosen = next((entry for entry in script.ADJECTIVES if entry.english == adjective), None)
    return NounPhrase(script.NOUNS[noun], determiner, chosen, plural)


def verb(english: str, german: str = "") -> Verb:
    found: Verb = next(
        entry
        for entry in script.VERBS
        if entry.english == english and german in {"", entry.infinitive()}
    )
    return found


@pytest.mark.parametrize(
    ("noun", "case", "english", "german"),
    [
        (phrase("old man"), "nominative", "the old man", "der alte Mann"),
        (phrase("old man"), "accusative", "the old man", "den alten Mann"),
        (phrase("old man", "a"), "nominative", "an old man", "ein alter Mann"),
        (phrase("old man", "my"), "dative", "my old man", "meinem alten Mann"),
        (phrase("new book", "a"), "accusative", "a new book", "ein neues Buch"),
        (phrase("new book", "this"), "dative", "this new book", "diesem neuen Buch"),
        (phrase("red flower", "the", plural=True), "dative", "the red flowers", "den roten Blumen"),
        (
            phrase("red apple", "two", plural=True),
            "accusative",
            "two red apples",
            "zwei rote Äpfel",
        ),
        (
            phrase("red apple", "many", plural=True),
            "dative",
            "many red apples",
            "vielen roten Äpfeln",
        ),
        (phrase("expensive coat", "no"), "accusative", "no expensive coat", "keinen teuren Mantel"),
        (phrase("cold milk", ""), "nominative", "cold milk", "kalte Milch"),
        (phrase("cold water", ""), "accusative", "cold water", "kaltes Wasser"),
        (phrase("cold tea", ""), "dative", "cold tea", "kaltem Tee"),
        (phrase("young student", "a"), "accusative", "a young student", "einen jungen Studenten"),
        (phrase("boy"), "dative", "the boy", "dem Jungen"),
        (phrase("neighbor", "our"), "nominative", "our neighbor", "unser Nachbar"),
        (phrase("friend", "Anna's", plural=True), "dative", "Anna's friends", "Annas Freunden"),
        (phrase("parents", "her"), "dative", "her parents", "ihren Eltern"),
        (phrase("car", "this", plural=True), "dative", "these cars", "diesen Autos"),
    ],
)
def test_noun_phrases(noun: NounPhrase, case: Case, english: str, german: str) -> None:
    assert (noun.english(), noun.german(case)) == (english, german)


@pytest.mark.parametrize(
    ("english", "german", "case", "noun", "expected"),
    [
        ("in", "in", "dative", phrase("garden"), "im Garten"),
        ("into", "in", "accusative", phrase("house"), "ins Haus"),
        ("into", "in", "accusative", phrase("old city"), "in die alte Stadt"),
        ("at", "an", "dative", phrase("big station"), "am großen Bahnhof"),
        ("to", "zu", "dative", phrase("station"), "zum Bahnhof"),
        ("to", "zu", "dative", phrase("church"), "zur Kirche"),
        ("to", "zu", "dative", phrase("station", "this"), "zu diesem Bahnhof"),
        ("from", "von", "dative", phrase("market"), "vom Markt"),
        ("out of", "aus", "dative", phrase("museum"), "aus dem Museum"),
        ("for", "für", "accusative", phrase("sister", "my"), "für meine Schwester"),
        ("through", "durch", "accusative", phrase("forest"), "durch den Wald"),
        ("under", "unter", "accusative", phrase("table"), "unter den Tisch"),
    ],
)
def test_prepositions(
    english: str, german: str, case: Case, noun: NounPhrase, expected: str
) -> None:
    assert prepositional(english, german, case, noun) == Words(
        f"{english} {noun.english()}", expected
    )


@pytest.mark.parametrize(
    ("english", "forms", "imperative"),
    [
        ("read", "lese liest liest lesen lesen", "lies"),
        ("help", "helfe hilfst hilft helfen helfen", "hilf"),
        ("eat", "esse isst isst essen essen", "iss"),
        ("give", "gebe gibst gibt geben geben", "gib"),
        ("wait for", "warte wartest wartet warten warten", "warte"),
        ("invite", "lade lädst lädt laden laden", "lade"),
        ("sit", "sitze sitzt sitzt sitzen sitzen", "sitz"),
        ("run", "laufe läufst läuft laufen laufen", "lauf"),
    ],
)
def test_german_verbs(english: str, forms: str, imperative: str) -> None:
    found = verb(english)
    assert (
        " ".join(found.present(pronoun) for pronoun in ("I", "you", "she", "we", "they")) == forms
    )
    assert found.imperative == imperative


def the(noun: NounPhrase) -> tuple[Object, ...]:
    return (Object(noun, "accusative"),)


def to(noun: NounPhrase) -> tuple[Object, ...]:
    return (Object(noun, "dative"),)


def it(noun: str) -> tuple[Object, ...]:
    return (Object(stand_in(phrase(noun)), "accusative"),)


ANNA, TEACHER = name("she", "Anna"), phrase("teacher")
SHE, HE, YOU, ICH = (PRONOUNS[pronoun] for pronoun in ("she", "he", "you", "I"))
TOMORROW, TODAY, YESTERDAY, EARLY = (
    Words(*words.split())
    for words in ("tomorrow morgen", "today heute", "yesterday gestern", "early früh")
)
OFTEN, NEVER, BY_BUS = Words("often", "oft"), Words("never", "nie"), Words("by bus", "mit dem Bus")
CITY, LAKE = Words("to the city", "in die Stadt"), Words("in the lake", "im See")
CALL = Clause(SHE, verb("call"), objects=the(phrase("brother", "her")))
A_BOOK, HIS_CAR, MY_KEY = (
    the(phrase("book", "a")),
    the(phrase("car", "his")),
    the(phrase("key", "my")),
)
AN_APPLE_TO_THE_CHILD = (*to(phrase("child")), *the(phrase("apple", "a")))
UNKNOWN = say(Clause(ICH, script.SPECIAL["wissen"], negated=True))
COME_BACK = say(Clause(ICH, verb("come back"), modal=MUST))


@pytest.mark.parametrize(
    ("words", "english", "german"),
    [
        (say(CALL), "she calls her brother", "sie ruft ihren Bruder an"),
        (
            say(replace(CALL, tense="past", modal=WANT)),
            "she wanted to call her brother",
            "sie wollte ihren Bruder anrufen",
        ),
        (
            COME_BACK + after("because", "weil", CALL),
            "I have to come back because she calls her brother",
            "ich muss zurückkommen , weil sie ihren Bruder anruft",
        ),
        (
            UNKNOWN + after("whether", "ob", replace(CALL, tense="past")),
            "I do not know whether she called her brother",
            "ich weiß nicht , ob sie ihren Bruder angerufen hat",
        ),
        (
            Words(english_infinitive(CALL), german_infinitive(CALL, zu=True)),
            "call her brother",
            "ihren Bruder anzurufen",
        ),
        (
            say(Clause(TEACHER, verb("buy"), "progressive", A_BOOK, time=TODAY, fronted=True)),
            "today the teacher is buying a book",
            "heute kauft der Lehrer ein Buch",
        ),
        (
            say(
                Clause(
                    HE,
                    verb("go", "fahren"),
                    "progressive",
                    complement=CITY,
                    manner=BY_BUS,
                    time=TOMORROW,
                )
            ),
            "he is going to the city by bus tomorrow",
            "er fährt morgen mit dem Bus in die Stadt",
        ),
        (
            say(Clause(ANNA, verb("get up"), "past", time=EARLY)),
            "Anna got up early",
            "Anna ist früh aufgestanden",
        ),
        (
            say(Clause(TEACHER, verb("give"), "past", AN_APPLE_TO_THE_CHILD)),
            "the teacher gave the child an apple",
            "der Lehrer hat dem Kind einen Apfel gegeben",
        ),
        (
            say(Clause(SHE, verb("buy"), "past", A_BOOK, negated=True)),
            "she did not buy a book",
            "sie hat kein Buch gekauft",
        ),
        (
            say(Clause(HE, verb("repair"), "progressive", HIS_CAR, time=TODAY, negated=True)),
            "he is not repairing his car today",
            "er repariert sein Auto heute nicht",
        ),
        (
            say(Clause(ICH, verb("find"), objects=MY_KEY, modal=CAN, negated=True)),
            "I cannot find my key",
            "ich kann meinen Schlüssel nicht finden",
        ),
        (
            say(Clause(HE, verb("read"), "past", it("story"), time=YESTERDAY)),
            "he read it yesterday",
            "er hat sie gestern gelesen",
        ),
        (
            say(Clause(HE, verb("turn off"), "past", it("lamp"))),
            "he turned it off",
            "er hat sie ausgemacht",
        ),
        (
            say(Clause(ANNA, verb("swim"), place=LAKE, modal=LIKE, negated=True)),
            "Anna does not like to swim in the lake",
            "Anna schwimmt nicht gern im See",
        ),
        (
            say(Clause(ANNA, verb("drink"), objects=the(phrase("tea", "")), frequency=OFTEN)),
            "Anna often drinks tea",
            "Anna trinkt oft Tee",
        ),
        (
            say(Clause(ANNA, verb("help"), objects=to(phrase("mother", "her")), frequency=NEVER)),
            "Anna never helps her mother",
            "Anna hilft ihrer Mutter nie",
        ),
        (
            ask(Clause(YOU, verb("see"), "past", the(phrase("horse")))),
            "did you see the horse",
            "hast du das Pferd gesehen",
        ),
        (
            ask(Clause(TEACHER, verb("come"), "future"), "when", "wann"),
            "when will the teacher come",
            "wann wird der Lehrer kommen",
        ),
    ],
)
def test_clauses(words: Words, english: str, german: str) -> None:
    assert (words.english, words.german) == (english, german)


def test_a_sentence_has_a_capital_a_mark_and_no_space_before_its_comma() -> None:
    assert finish(COME_BACK + after("because", "weil", CALL)) == (
        "I have to come back because she calls her brother.",
        "Ich muss zurückkommen, weil sie ihren Bruder anruft.",
    )


def test_imperative() -> None:
    assert (
        german_imperative(Clause(YOU, verb("turn on"), objects=it("lamp"), time=Words("", "bitte")))
        == "mach sie bitte an"
    )


# --- The corpus -----------------------------------------------------------------------------------------------------------


def test_the_script_makes_the_committed_file(tmp_path: Path) -> None:
    script.main(["--output", str(tmp_path / "sample.tsv")])
    assert (tmp_path / "sample.tsv").read_bytes() == SAMPLE.read_bytes()


def test_another_seed_makes_another_corpus() -> None:
    assert script.make_pairs(50, seed=1) != script.make_pairs(50, seed=2)


def test_form() -> None:
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        assert line == unicodedata.normalize("NFC", line)
        assert len(line.split("\t")) == 2
        for text in line.split("\t"):
            assert re.fullmatch(
                r"[A-ZÄÖÜ][\w',]*( [\w',]+)*([?] [A-Z][\w',]*( [\w',]+)*)?[.?!]", text
            ), text
    assert SAMPLE.stat().st_size < 600_000


def test_no_sentence_stands_twice() -> None:
    assert len(PAIRS) >= 5000
    for column in (0, 1):
        assert len({script.normal(pair[column]) for pair in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize(
    ("column", "pattern", "least"),
    [
        pytest.param(1, r"\b(?:[Dd]em|[Mm]einem|[Ss]einem|[Ii]hrem|[Uu]nserem) ", 100, id="dative"),
        pytest.param(
            1, r"\b(?:[Dd]en|[Ee]inen|[Mm]einen|[Ss]einen|[Ii]hren) ", 100, id="accusative"
        ),
        pytest.param(
            1,
            r"\b(?:mit|bei|von|zu|nach|aus|im|am|zum|zur|beim|vom) ",
            100,
            id="prepositions with the dative",
        ),
        pytest.param(1, r"\b(?:für|ohne|durch|gegen) ", 100, id="prepositions with the accusative"),
        pytest.param(
            1,
            r"\b(?:auf|unter|hinter|neben|in) (?:den|die|das|ein|eine|einen) ",
            100,
            id="two-way, direction",
        ),
        pytest.param(
            1,
            r"\b(?:auf|unter|hinter|neben|in) (?:dem|der|einem|einer) |\bim ",
            100,
            id="two-way, place",
        ),
        pytest.param(1, r"\b(?:[Ii]m|[Aa]m|ins|zum|zur|beim|vom)\b", 100, id="contractions"),
        pytest.param(1, r"\b(?:Jungen|Studenten|Nachbarn)\b", 100, id="weak nouns"),
        pytest.param(
            1,
            r"\b(?:Heute|Jetzt|Morgen|Gestern|Am|Im|Jeden|Letzte|Vor|Nächste) ",
            100,
            id="inversion",
        ),
        pytest.param(1, r", weil ", 100, id="weil"),
        pytest.param(1, r", dass ", 100, id="dass"),
        pytest.param(1, r", ob ", 100, id="ob"),
        pytest.param(1, r"(?:^W|, w)enn ", 100, id="wenn"),
        pytest.param(1, r", um .*zu", 100, id="um zu"),
        pytest.param(
            1,
            r", (?:der|die|das|den) .*(?:,|\.|\?)$|, (?:der|die|das|den) .*,",
            100,
            id="relative clauses",
        ),
        pytest.param(1, r", (?:und|aber|deshalb) ", 100, id="coordination"),
        pytest.param(
            1, r" (?:an|auf|ab|ein|mit|zu|aus|fern|zurück)[.?!]$", 100, id="particles apart"
        ),
        pytest.param(
            1, r"(?:an|auf|ab|ein|mit|zu|aus|fern|zurück)ge\w+", 100, id="separable participles"
        ),
        pytest.param(
            1, r"\b(?:hat|habe|hast|haben|Hat|Hast|Haben) .*\bge\w+", 100, id="perfect with haben"
        ),
        pytest.param(
            1,
            r"\b(?:ist|bin|bist|sind|Ist|Bist|Sind) .*\w*ge\w+(?:en)\b",
            100,
            id="perfect with sein",
        ),
        pytest.param(
            1, r"\b(?:kann|muss|will|darf|soll|möchte|konnte|wollte)\w*", 100, id="modal verbs"
        ),
        pytest.param(1, r"\bwird|werden|werde\b", 100, id="future"),
        pytest.param(1, r"\bnicht\b", 100, id="nicht"),
        pytest.param(1, r"\b[Kk]ein\w*", 100, id="kein"),
        pytest.param(1, r"^(?:W\w+) .*\?$", 100, id="questions with a question word"),
        pytest.param(0, r"^(?:Is|Are|Do|Does|Did|Can|Will) .*\?$", 100, id="questions without one"),
        pytest.param(0, r"^(?:Please|Let us|Do not|[A-Z]\w+ .*!$)", 100, id="commands"),
        pytest.param(0, r" than | as \w+ as ", 100, id="comparison"),
        pytest.param(0, r"\b(?:it|them|him|her|us|me)[.?!]$", 100, id="pronouns as objects"),
        pytest.param(0, r"\b(?:two|three|four|many|these) ", 100, id="plurals"),
        pytest.param(0, r"[Tt]here (?:is|are)|(?:Is|Are) there", 100, id="there is"),
    ],
)
def test_phenomena(column: int, pattern: str, least: int) -> None:
    assert sum(bool(re.search(pattern, pair[column])) for pair in PAIRS) >= least
