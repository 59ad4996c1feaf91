"""The sample corpus: its grammar against sentences written by hand, its form, and what it contains."""

import importlib.util
import re
import unicodedata
from collections.abc import Callable
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
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script()
PAIRS: list[Pair] = [(line.split("\t")[0], line.split("\t")[1]) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]


# --- The grammar ----------------------------------------------------------------------------------------------------------


def phrase(words: str, determiner: str = "the", plural: bool = False) -> NounPhrase:
    """ "old man": the noun with its adjective, from the lexicon."""
    adjective, _, noun = words.rpartition(" ")
    chosen = next((entry for entry in script.ADJECTIVES if entry.english == adjective), None)
    return NounPhrase(script.NOUNS[noun], determiner, chosen, plural)


def verb(english: str, german: str = "") -> Verb:
    found: Verb = next(entry for entry in script.VERBS if entry.english == english and german in {"", entry.infinitive()})
    return found


def accusative(noun: NounPhrase) -> tuple[Object, ...]:
    return (Object(noun, "accusative"),)


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
        (phrase("green apple", "two", plural=True), "accusative", "two green apples", "zwei grüne Äpfel"),
        (phrase("green apple", "many", plural=True), "dative", "many green apples", "vielen grünen Äpfeln"),
        (phrase("expensive coat", "no"), "accusative", "no expensive coat", "keinen teuren Mantel"),
        (phrase("cold milk", ""), "nominative", "cold milk", "kalte Milch"),
        (phrase("cold water", ""), "accusative", "cold water", "kaltes Wasser"),
        (phrase("hot tea", ""), "dative", "hot tea", "heißem Tee"),
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
        ("to", "zu", "dative", phrase("bakery"), "zur Bäckerei"),
        ("to", "zu", "dative", phrase("station", "this"), "zu diesem Bahnhof"),
        ("from", "von", "dative", phrase("market"), "vom Markt"),
        ("out of", "aus", "dative", phrase("museum"), "aus dem Museum"),
        ("for", "für", "accusative", phrase("sister", "my"), "für meine Schwester"),
        ("through", "durch", "accusative", phrase("forest"), "durch den Wald"),
        ("under", "unter", "accusative", phrase("table"), "unter den Tisch"),
    ],
)
def test_prepositions(english: str, german: str, case: Case, noun: NounPhrase, expected: str) -> None:
    assert prepositional(english, german, case, noun) == Words(f"{english} {noun.english()}", expected)


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
        ("like to", "", ""),
    ][:-1],
)
def test_german_verbs(english: str, forms: str, imperative: str) -> None:
    found = verb(english)
    assert " ".join(found.present(pronoun) for pronoun in ("I", "you", "she", "we", "they")) == forms
    assert found.imperative == imperative


ANNA, TEACHER, SHE, I, HE = name("she", "Anna"), phrase("teacher"), PRONOUNS["she"], PRONOUNS["I"], PRONOUNS["he"]
TOMORROW, TODAY, YESTERDAY = Words("tomorrow", "morgen"), Words("today", "heute"), Words("yesterday", "gestern")
BOOK, HER_BROTHER, KEY = phrase("book", "a"), phrase("brother", "her"), phrase("key", "my")
CALL = Clause(SHE, verb("call"), objects=accusative(HER_BROTHER))
GO = Clause(HE, verb("go", "fahren"), "progressive", complement=Words("to the city", "in die Stadt"), manner=Words("by bus", "mit dem Bus"), time=TOMORROW)
GIVE = Clause(TEACHER, verb("give"), "past", (Object(phrase("child"), "dative"), Object(phrase("apple", "an"[:1]), "accusative")))


@pytest.mark.parametrize(
    ("sentence", "english", "german"),
    [
        (
            lambda: finish(say(Clause(TEACHER, verb("buy"), "progressive", accusative(BOOK), time=TODAY, fronted=True))),
            "Today the teacher is buying a book.",
            "Heute kauft der Lehrer ein Buch.",
        ),
        (lambda: finish(say(GO)), "He is going to the city by bus tomorrow.", "Er fährt morgen mit dem Bus in die Stadt."),
        (lambda: finish(say(CALL)), "She calls her brother.", "Sie ruft ihren Bruder an."),
        (
            lambda: finish(say(Clause(I, verb("come back"), modal=MUST)) + after("because", "weil", CALL)),
            "I have to come back because she calls her brother.",
            "Ich muss zurückkommen, weil sie ihren Bruder anruft.",
        ),
        (
            lambda: finish(say(Clause(SHE, verb("call"), "past", accusative(HER_BROTHER), modal=WANT))),
            "She wanted to call her brother.",
            "Sie wollte ihren Bruder anrufen.",
        ),
        (
            lambda: finish(say(Clause(ANNA, verb("get up"), "past", time=Words("early", "früh")))),
            "Anna got up early.",
            "Anna ist früh aufgestanden.",
        ),
        (lambda: finish(say(GIVE)), "The teacher gave the child an apple.", "Der Lehrer hat dem Kind einen Apfel gegeben."),
        (
            lambda: finish(say(Clause(SHE, verb("buy"), "past", accusative(BOOK), negated=True))),
            "She did not buy a book.",
            "Sie hat kein Buch gekauft.",
        ),
        (
            lambda: finish(say(Clause(HE, verb("repair"), "progressive", accusative(phrase("car", "his")), time=TODAY, negated=True))),
            "He is not repairing his car today.",
            "Er repariert sein Auto heute nicht.",
        ),
        (
            lambda: finish(say(Clause(I, verb("find"), "present", accusative(KEY), modal=CAN, negated=True))),
            "I cannot find my key.",
            "Ich kann meinen Schlüssel nicht finden.",
        ),
        (
            lambda: finish(say(Clause(HE, verb("read"), "past", (Object(stand_in(phrase("story")), "accusative"),), time=YESTERDAY))),
            "He read it yesterday.",
            "Er hat sie gestern gelesen.",
        ),
        (
            lambda: finish(say(Clause(ANNA, verb("swim"), place=Words("in the lake", "im See"), modal=LIKE, negated=True))),
            "Anna does not like to swim in the lake.",
            "Anna schwimmt nicht gern im See.",
        ),
        (
            lambda: finish(say(Clause(ANNA, verb("drink"), objects=accusative(phrase("tea", "")), frequency=Words("often", "oft")))),
            "Anna often drinks tea.",
            "Anna trinkt oft Tee.",
        ),
        (
            lambda: finish(say(Clause(ANNA, verb("help"), objects=(Object(phrase("mother", "her"), "dative"),), frequency=Words("never", "nie")))),
            "Anna never helps her mother.",
            "Anna hilft ihrer Mutter nie.",
        ),
        (
            lambda: finish(ask(Clause(PRONOUNS["you"], verb("see"), "past", accusative(phrase("horse")))), "?"),
            "Did you see the horse?",
            "Hast du das Pferd gesehen?",
        ),
        (
            lambda: finish(ask(Clause(TEACHER, verb("fly"), "future"), "when", "wann"), "?"),
            "When will the teacher fly?",
            "Wann wird der Lehrer fliegen?",
        ),
        (
            lambda: finish(say(Clause(I, script.SPECIAL["wissen"], negated=True)) + after("whether", "ob", replace_tense(CALL))),
            "I do not know whether she called her brother.",
            "Ich weiß nicht, ob sie ihren Bruder angerufen hat.",
        ),
        (
            lambda: finish(Words(english_infinitive(CALL), german_infinitive(CALL, zu=True))),
            "Call her brother.",
            "Ihren Bruder anzurufen.",
        ),
        (
            lambda: finish(Words("turn it on", german_imperative(Clause(SHE, verb("turn on"), objects=accusative_it("lamp")))), "!"),
            "Turn it on!",
            "Mach sie an!",
        ),
        (
            lambda: finish(say(Clause(HE, verb("turn off"), "past", accusative_it("radio")))),
            "He turned it off.",
            "Er hat es ausgemacht.",
        ),
    ],
)
def test_sentences(sentence: Callable[[], Pair], english: str, german: str) -> None:
    assert sentence() == (english, german)


def replace_tense(clause: Clause) -> Clause:
    return Clause(clause.subject, clause.verb, "past", clause.objects)


def accusative_it(noun: str) -> tuple[Object, ...]:
    return (Object(stand_in(phrase(noun)), "accusative"),)


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
            assert re.fullmatch(r"[A-ZÄÖÜ][\w',]*( [\w',]+)*([?] [A-Z][\w',]*( [\w',]+)*)?[.?!]", text), text
    assert SAMPLE.stat().st_size < 600_000


def test_no_sentence_stands_twice() -> None:
    assert len(PAIRS) >= 5000
    for column in (0, 1):
        assert len({script.normal(pair[column]) for pair in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize(
    ("column", "pattern", "least"),
    [
        pytest.param(1, r"\b(?:[Dd]em|[Mm]einem|[Ss]einem|[Ii]hrem|[Uu]nserem) ", 100, id="dative"),
        pytest.param(1, r"\b(?:[Dd]en|[Ee]inen|[Mm]einen|[Ss]einen|[Ii]hren) ", 100, id="accusative"),
        pytest.param(1, r"\b(?:mit|bei|von|zu|nach|aus|im|am|zum|zur|beim|vom) ", 100, id="prepositions with the dative"),
        pytest.param(1, r"\b(?:für|ohne|durch|gegen) ", 100, id="prepositions with the accusative"),
        pytest.param(1, r"\b(?:auf|unter|hinter|neben|in) (?:den|die|das|ein|eine|einen) ", 100, id="two-way, direction"),
        pytest.param(1, r"\b(?:auf|unter|hinter|neben|in) (?:dem|der|einem|einer) |\bim ", 100, id="two-way, place"),
        pytest.param(1, r"\b(?:[Ii]m|[Aa]m|ins|zum|zur|beim|vom)\b", 100, id="contractions"),
        pytest.param(1, r"\b(?:Jungen|Studenten|Nachbarn)\b", 100, id="weak nouns"),
        pytest.param(1, r"\b(?:Heute|Jetzt|Morgen|Gestern|Am|Im|Jeden|Letzte|Vor|Nächste) ", 100, id="inversion"),
        pytest.param(1, r", weil ", 100, id="weil"),
        pytest.param(1, r", dass ", 100, id="dass"),
        pytest.param(1, r", ob ", 100, id="ob"),
        pytest.param(1, r"(?:^W|, w)enn ", 100, id="wenn"),
        pytest.param(1, r", um .*zu", 100, id="um zu"),
        pytest.param(1, r", (?:der|die|das|den) .*(?:,|\.|\?)$|, (?:der|die|das|den) .*,", 100, id="relative clauses"),
        pytest.param(1, r", (?:und|aber|deshalb) ", 100, id="coordination"),
        pytest.param(1, r" (?:an|auf|ab|ein|mit|zu|aus|fern|zurück)[.?!]$", 100, id="particles apart"),
        pytest.param(1, r"(?:an|auf|ab|ein|mit|zu|aus|fern|zurück)ge\w+", 100, id="separable participles"),
        pytest.param(1, r"\b(?:hat|habe|hast|haben|Hat|Hast|Haben) .*\bge\w+", 100, id="perfect with haben"),
        pytest.param(1, r"\b(?:ist|bin|bist|sind|Ist|Bist|Sind) .*\w*ge\w+(?:en)\b", 100, id="perfect with sein"),
        pytest.param(1, r"\b(?:kann|muss|will|darf|soll|möchte|konnte|wollte)\w*", 100, id="modal verbs"),
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
