"""Write the sample corpus: English sentences and their German translations, made from a small
grammar and lexicon.

    python scripts/make_sample.py [--output PATH] [--pairs N] [--seed S]

`sample_grammar.py` contains the grammar, `sample_lexicon.txt` the words. The `Writer` draws clauses
whose words fit together, and joins them. The same seed always gives the same file.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.sample_grammar import (
    ALLOWED,
    CAN,
    LIKE,
    MUST,
    NOTHING,
    NUMBERS,
    POSSESSIVES,
    PRONOUNS,
    SHOULD,
    WANT,
    WHO,
    WISH,
    Adjective,
    Case,
    Clause,
    Described,
    Modal,
    Nominal,
    Noun,
    NounPhrase,
    Object,
    Pair,
    Pronoun,
    Tense,
    Verb,
    Words,
    after,
    ask,
    capital,
    english_clause,
    english_infinitive,
    finish,
    german_clause,
    german_imperative,
    german_infinitive,
    name,
    prepositional,
    say,
    stand_in,
)

ROOT = Path(__file__).resolve().parent.parent
LEXICON_PATH = ROOT / "scripts" / "sample_lexicon.txt"
OUTPUT = ROOT / "data" / "sample" / "sample.tsv"
PAIRS = 6000
SEED = 2014


# --- The lexicon
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
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


def read_sections(path: Path) -> dict[str, list[str]]:
    """The lines of each section, without comments."""
    sections: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").replace("\n+", " /").splitlines():
        if line.startswith("["):
            rows = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            rows.append(line)
    return sections


def columns_of(row: str) -> list[str]:
    return [column.replace("_", " ") for column in row.split()]


def read_nouns(rows: Iterable[str]) -> dict[str, list[Noun]]:
    """The nouns of each group."""
    groups: dict[str, list[Noun]] = {}
    for group, entries in (row.split(": ") for row in rows):
        for english, english_plural, german, gender, german_plural in map(
            columns_of, entries.split(";")
        ):
            noun = Noun(
                english,
                english_plural,
                german,
                gender.replace("w", "m"),
                german_plural,
                weak=gender == "w",
            )
            groups.setdefault(group, []).append(noun)
    return groups


def read_adjective(row: str) -> Adjective:
    forms, nouns = row.split(": ")
    english, german, english_comparative, german_comparative = columns_of(forms)
    return Adjective(
        english, german, english_comparative, german_comparative, frozenset(expand(nouns))
    )


def read_verb(row: str) -> Verb:
    """Six forms, the uses, and the frames separated by "/"."""
    columns = row.split()
    english, past, progressive, german, third, participle = columns_of(" ".join(columns[:6]))
    frames = tuple(tuple(frame.split()) for frame in " ".join(columns[7:]).split("/"))
    return Verb(english, past, progressive, german, third, participle, columns[6], frames)


def expand(fillers: str) -> list[str]:
    """The nouns of a list of nouns and groups."""
    return [noun for filler in fillers.split(",") for noun in GROUPS.get(filler, [filler])]


LEXICON = read_sections(LEXICON_PATH)
NOUN_GROUPS = read_nouns(LEXICON["nouns"])
NOUNS = {noun.english: noun for group in NOUN_GROUPS.values() for noun in group}
GROUPS = {group: [noun.english for noun in nouns] for group, nouns in NOUN_GROUPS.items()}
ADJECTIVES = [read_adjective(row) for row in LEXICON["adjectives"]]
VERBS = [read_verb(row) for row in LEXICON["verbs"]]
SPECIAL = {verb.infinitive(): verb for verb in map(read_verb, LEXICON["special verbs"])}
PLACES = {
    place: words.split()
    for places, words in (row.split(": ") for row in LEXICON["places"])
    for place in places.split()
}
WORDS = {
    key: [Words(*entry.strip().split("=")) for entry in entries.split(",")]
    for key, entries in (row.split(": ") for row in LEXICON["words"])
}
LISTS = dict(row.split(": ") for row in LEXICON["lists"])
NAMES = [name(pronoun, person) for pronoun in ("she", "he") for person in LISTS[pronoun].split()]
BE, GO, COME, STAY, HAVE, LIE, STAND = (
    SPECIAL[verb] for verb in ["sein", "gehen", "kommen", "bleiben", "haben", "liegen", "stehen"]
)

USES: dict[str, tuple[Tense, str]] = {  # letter: the tense, and the kind of time expression
    "n": ("progressive", "now"),
    "a": ("progressive", "arranged"),
    "s": ("present", ""),
    "h": ("present", "habit"),  # or a frequency
    "p": ("past", "past"),
    "f": ("future", "future"),
    "m": ("present", "modal"),  # with a modal verb
    "l": ("present", "leisure"),  # with "like to"
    "i": ("present", ""),  # imperative
}
PREPOSITIONS: dict[
    str, tuple[str, str, Case]
] = {  # slot: English ("" if it is part of the verb), German, case
    "for": ("for", "für", "accusative"),
    "through": ("through", "durch", "accusative"),
    "against": ("against", "gegen", "accusative"),
    "without": ("without", "ohne", "accusative"),
    "into": ("into", "in", "accusative"),
    "on": ("on", "auf", "accusative"),
    "auf": ("", "auf", "accusative"),
    "mit": ("", "mit", "dative"),
    "with": ("with", "mit", "dative"),
    "from": ("from", "von", "dative"),
    "out": ("out of", "aus", "dative"),
}
COLORS, PRAISE, FLAWS, TRAITS = (
    frozenset(LISTS[key].split()) for key in ("colors", "praise", "faults", "traits")
)


# --- Drawing sentences ----------------------------------------------------------------------------------------------------

T = TypeVar("T")


class Writer:
    """Draws sentence pairs. Methods for parts come first, then clauses, then the sentences that PATTERNS lists."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def choose(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    # Parts

    def phrase(
        self, noun: str, determiners: str, plural: bool = False, described: float = 0.3
    ) -> NounPhrase:
        """The noun with one of the determiners ("-" for none) and perhaps an adjective."""
        fitting = [adjective for adjective in ADJECTIVES if noun in adjective.nouns]
        adjective = self.choose(fitting) if fitting and self.chance(described) else None
        return NounPhrase(
            NOUNS[noun], self.choose(determiners.split()).strip("-"), adjective, plural
        )

    def kin(self, subject: Nominal | None = None) -> NounPhrase:
        """A relative or friend, usually of the subject."""
        related = subject is not None and subject.english().endswith(tuple(GROUPS["kin"]))
        noun = self.choose(LISTS["peers"].split() if related else GROUPS["kin"])
        if subject is None:
            determiners = "my my my my our our your his her Anna's Paul's"
        else:
            possessive = POSSESSIVES.get(subject.pronoun, "our")
            others = "your Maria's" if possessive in {"my", "our"} else "my our Anna's Tom's"
            determiners = " ".join(
                [possessive] * 6
                + [other for other in others.split() if other[:-2] not in subject.english()]
            )
        return self.phrase(
            noun, determiners, plural=noun in {"brother", "sister", "friend"} and self.chance(0.2)
        )

    def person(self) -> NounPhrase:
        plural = self.chance(0.2)
        return self.phrase(
            self.choose(GROUPS["person"]),
            "the the the two this" if plural else "the the the the a this",
            plural,
        )

    def subject(self, pronouns: str = "I I I you he he she she we we we they they") -> Nominal:
        """A person as subject."""
        draw = self.random.random()
        if draw < 0.4:
            return PRONOUNS[self.choose(pronouns.split())]
        if draw < 0.57:
            return self.choose(NAMES)
        if draw < 0.62:
            first, second = (person.subject for person in self.random.sample(NAMES, 2))
            return name("they", f"{first} and {second}", f"{first} und {second}")
        return self.kin() if draw < 0.86 else self.person()

    def other(self) -> Nominal:
        """A definite person, neither "I" nor "you", that "he", "she" or "they" can replace."""
        subject = self.subject("he he she she they they")
        return subject if subject.known and subject.pronoun != "it" else self.other()

    def somebody(self, pronouns: str = "I we") -> Nominal:
        """Like `other`, or one of the pronouns."""
        return self.other() if self.chance(0.6) else PRONOUNS[self.choose(pronouns.split())]

    def people(self, subject: Nominal) -> Nominal:
        """A person as object of the subject."""
        draw = self.random.random()
        if draw < 0.3:
            alike = {"I": "we", "we": "I", "she": "they", "they": "she"}.get(
                subject.pronoun, ""
            )  # avoids "sie" as subject and object
            return self.choose(
                [
                    pronoun
                    for key, pronoun in PRONOUNS.items()
                    if key not in {subject.pronoun, alike, "it"}
                ]
            )
        if draw < 0.45:
            return self.choose(
                [person for person in NAMES if person.subject not in subject.english()]
            )
        return self.kin(subject) if draw < 0.75 else self.person()

    def thing(self, fillers: str, subject: Nominal, uses: str = "") -> Nominal:
        """An object from the fillers.

        `uses`: it is definite (d), has no adjective (b), each subject has one (w), is not the subject's (o), can be counted (c).
        """
        if fillers == "people":
            return self.people(subject)
        noun = self.choose(expand(fillers))
        if noun in GROUPS["kin"]:
            return self.kin(subject)
        possessive, plural = POSSESSIVES.get(subject.pronoun, "the"), False
        if NOUNS[noun].mass:
            determiners = "- - - - the the" if noun in GROUPS["dish"] + GROUPS["drink"] else "-"
        elif noun in GROUPS["person"]:
            determiners = "the the the this"
        elif noun in LISTS["unowned"].split():
            determiners = "the the the the this" if "d" in uses else "a a a the the this"
        elif noun in GROUPS["serving"]:
            determiners = "a"
        elif "d" in uses:
            plural = "w" in uses and subject.pronoun in {"we", "they"}
            determiners = f"the the {possessive} {possessive} this"
        else:
            plural = "c" in uses and self.chance(0.25)
            many = "- - two three many" if noun in expand("food,text,flower") else "two three many"
            determiners = (
                many
                if plural
                else "a a a the the this"
                if "o" in uses
                else f"a a a the the {possessive} this"
            )
        return self.phrase(noun, determiners, plural, 0 if "b" in uses else 0.3)

    def place(self, places: str, subject: Nominal, direction: bool = False) -> Words:
        """A place, or a direction."""
        place = self.choose(places.split(","))
        place = self.choose(LISTS["towns"].split()) if place == "towns" else place
        if place == "host":
            host = self.kin(subject)
            owner = host.english() + ("'" if host.pronoun == "they" else "'s")
            return Words(f"at {owner} house", f"bei {host.german('dative')}")
        if place in WORDS:
            return WORDS[place][direction]
        english, german, towards = PLACES[place]
        common = place in LISTS["common"].split() and not direction
        phrase = self.phrase(
            place,
            "the the the the this our a a" if common else "the the the the the this our",
            described=0.25,
        )
        if direction:
            return prepositional(
                "to", towards, "dative" if towards == "zu" else "accusative", phrase
            )
        return prepositional(english, german, "dative", phrase)

    def spot(self, spots: str, case: Case) -> Words:
        """On, under or next to something: dative for a place, accusative for a direction."""
        english, german, nouns = columns_of(self.choose(LISTS[spots].split()).replace(":", " "))
        return prepositional(
            english, german, case, self.phrase(self.choose(nouns.split(",")), "the", described=0.2)
        )

    def quality(
        self, noun: str, degrees: str = "- - very very too", words: frozenset[str] | None = None
    ) -> Words:
        """A predicate for a noun, such as "very expensive"; nothing if no adjective (of these words) fits."""
        fitting = [
            word
            for word in ADJECTIVES
            if noun in word.nouns
            and word.english != "little"
            and (not words or word.english in words)
        ]
        if not fitting:
            return NOTHING
        adjective, degree = self.choose(fitting), self.choose(degrees.split()).strip("-")
        if adjective.english in COLORS | {"broken"} or (
            degree == "too" and adjective.english not in FLAWS - {"old"}
        ):
            degree = ""
        return Words(degree, {"very": "sehr", "too": "zu"}.get(degree, "")) + Words(
            adjective.english, adjective.german
        )

    # Clauses

    def clause(
        self, subject: Nominal, uses: str, verbs: str = "", slot: str = "", front: float = 0.0
    ) -> Clause:
        """A clause of one of the uses, with one of the verbs, and a frame with the slot.

        `front`: probability that its time comes first.
        """
        use, wanted = self.choose(uses), columns_of(verbs)
        fitting = [
            (verb, frames)
            for verb in VERBS
            if use in verb.uses and (not wanted or verb.english in wanted)
            if (frames := [frame for frame in verb.frames if slot in " ".join(frame)])
        ]
        verb, frames = self.choose(fitting)
        tense, times = USES[use]
        clause = Clause(subject, verb, tense)
        for part in self.choose(frames):
            clause = self.fill(clause, part, surely=bool(slot) and slot in part)
        if use == "h" and "k" not in verb.uses and self.chance(0.5):
            return replace(clause, frequency=self.choose(WORDS["frequency"]))
        if use == "m":
            past = self.chance(0.2)
            modals = (
                [MUST, WANT, WANT] if past else [CAN, CAN, MUST, MUST, WANT, WANT, SHOULD, WISH]
            )
            if subject.pronoun in {"I", "you", "we", "they"} and self.chance(0.15):
                modals = [ALLOWED]
            clause = replace(clause, modal=self.choose(modals), tense="past" if past else "present")
            times = "past" if past else "modal"
        if use == "l":
            clause = replace(clause, modal=LIKE)
        return self.timed(
            clause, times, {"a": 1.0, "h": 1.0, "p": 0.6, "f": 0.6}.get(use, 0.25), front
        )

    def timed(self, clause: Clause, times: str, probability: float, front: float = 0.0) -> Clause:
        """The clause, perhaps with a time: an hour if the verb needs one."""
        if not times or not self.chance(probability):
            return clause
        time = self.choose(WORDS["hour" if "k" in clause.verb.uses else times])
        return replace(clause, time=time, fronted=time not in WORDS["hour"] and self.chance(front))

    def fill(self, clause: Clause, part: str, surely: bool = False) -> Clause:
        """The clause with one slot of the verb's frame filled."""
        slot, _, fillers = part.partition(":")
        if slot.endswith("?") and not surely and self.chance(0.6):
            return clause
        subject, slot, uses = clause.subject, slot.rstrip("?"), clause.verb.uses
        if slot in {"acc", "dat"}:
            case: Case = "accusative" if slot == "acc" else "dative"
            return replace(
                clause, objects=(*clause.objects, Object(self.thing(fillers, subject, uses), case))
            )
        if slot == "by":
            return replace(clause, manner=self.choose(WORDS[fillers]))
        if slot == "where":
            return replace(clause, place=self.place(fillers, subject))
        if slot == "whither":
            return replace(clause, complement=self.place(fillers, subject, direction=True))
        english, german, case = PREPOSITIONS[slot]
        words = prepositional(
            english,
            german,
            case,
            self.thing(
                fillers, subject, {"for": uses, "auf": uses, "without": "dw"}.get(slot, "d")
            ),
        )
        return (
            replace(clause, manner=words)
            if slot in {"with", "without", "against"}
            else replace(clause, complement=words)
        )

    def denied(self, clause: Clause) -> Clause:
        """The clause, negated if that makes sense."""
        determiners = {
            part.nominal.determiner
            for part in clause.objects
            if isinstance(part.nominal, NounPhrase)
        }
        repeated = (
            clause.frequency != NOTHING
            or clause.time in WORDS["habit"] + WORDS["hour"] + WORDS["soon"]
        )
        if repeated or clause.modal == WISH or determiners & {*NUMBERS, "many"}:
            return clause
        if clause.objects:
            clause = replace(clause, place=NOTHING, manner=NOTHING)
        return replace(clause, negated=True)

    def feeling(self, subject: Nominal, words: str = "weakness") -> Clause:
        return Clause(subject, BE, complement=self.choose(WORDS[words]))

    def weather(self, tense: Tense, good: bool) -> Clause:
        """It is raining; the sun is shining; the weather is good; it is cold."""
        if self.chance(0.5):
            complement = self.choose(WORDS["good weather" if good else "bad weather"])
            subject = (
                PRONOUNS["it"]
                if complement.english in {"warm", "cold"}
                else name("it", "the weather", "das Wetter")
            )
            return Clause(
                subject, BE, "present" if tense == "progressive" else tense, complement=complement
            )
        if good:
            return Clause(name("it", "the sun", "die Sonne"), SPECIAL["scheinen"], tense)
        return Clause(PRONOUNS["it"], SPECIAL[self.choose(("regnen", "schneien"))], tense)

    def wish(self, subject: Nominal, modal: Modal, verbs: str = "") -> Clause:
        """A clause about what a person can, must or wants to do."""
        return replace(
            self.clause(subject, "m" if verbs else "a", verbs),
            modal=modal,
            tense="present",
            time=NOTHING,
        )

    def having_time(self, subject: Nominal, determiner: str = "") -> Clause:
        return Clause(
            subject, HAVE, objects=(Object(NounPhrase(NOUNS["time"], determiner), "accusative"),)
        )

    def going(self, subject: Nominal, place: str) -> Clause:
        return Clause(
            subject, GO, "progressive", complement=self.place(place, subject, direction=True)
        )

    def errand(self) -> tuple[str, str]:
        """A place to go to, and verbs for what to do there."""
        places, verbs = self.choose(LISTS["errands"].split()).split("=")
        return self.choose(places.split(",")), verbs.replace(",", " ")

    def staying(self, subject: Nominal, same: Nominal) -> tuple[Clause, Clause]:
        """A person stays at home, and the reason."""
        reasons = [self.feeling(same), self.feeling(same), self.wish(same, MUST, LISTS["duties"])]
        if self.chance(0.4):
            return self.timed(
                self.going(subject, self.choose(("home", "bed"))), "now", 0.3
            ), self.choose(reasons[:2])
        home = Clause(subject, STAY, "progressive", place=self.place("home", subject))
        away = Clause(subject, COME, "progressive", negated=True)
        reasons += [self.having_time(same, "no"), self.weather("progressive", good=False)]
        return self.timed(self.choose((home, away)), "arranged", 0.6), self.choose(reasons)

    def leaving(self, subject: Nominal, same: Nominal) -> tuple[Clause, Clause]:
        """A person goes somewhere, and the reason."""
        place, verbs = self.errand()
        wish = replace(self.wish(same, WANT, verbs), place=NOTHING)
        return self.timed(self.going(subject, place), "now", 0.3), wish

    def mood(self, subject: Nominal, same: Nominal) -> tuple[Clause, Clause]:
        """A person is happy or sad, and the reason."""
        happy, sad = WORDS["feeling"][2:4]
        if self.chance(0.4):
            loss = self.clause(same, "p", "lose forget")
            return Clause(subject, BE, complement=sad), self.choose(
                (loss, loss, self.weather("progressive", good=False))
            )
        event = self.clause(self.kin(subject), "p", LISTS["kindness"], slot="people")
        event = replace(
            event, objects=(Object(same, event.objects[0].case), *event.objects[1:]), place=NOTHING
        )
        reasons = (
            event,
            event,
            self.clause(same, "p", "find get"),
            self.weather("progressive", good=True),
        )
        return Clause(subject, BE, complement=happy), self.choose(reasons)

    def asked(self, subject: Nominal) -> tuple[Clause, str, str]:
        """A clause without one part, and the question words for that part."""
        german = self.choose(("was", "wen", "wo", "wohin", "wann", "warum", "wie viele"))
        english = {"was": "what", "wen": "who", "wann": "when", "warum": "why"}.get(german, "where")
        if german == "was":
            clause = self.clause(subject, "npm", LISTS["asked about"])
            clause = replace(clause, objects=clause.objects[:-1])
        elif german == "wen":
            clause = self.clause(subject, "npma", LISTS["social"], slot="people")
            clause, german = replace(clause, objects=()), WHO.german(clause.objects[0].case)
        elif german == "wo":
            clause = (
                self.clause(subject, "s", "live")
                if self.chance(0.25)
                else self.clause(subject, "np", slot="where")
            )
            clause = replace(clause, place=NOTHING)
        elif german == "wohin":
            clause = self.clause(subject, "npam", "go fly travel", slot="whither")
            clause = replace(
                clause,
                verb=GO if clause.verb.english == "go" else clause.verb,
                complement=NOTHING,
                manner=NOTHING,
            )
        elif german == "wie viele":
            clause, noun = self.about_thing(subject, LISTS["counted"])
            english, german = f"how many {noun.english_plural}", f"wie viele {noun.german_plural}"
        else:
            clause = self.clause(subject, "paf" if german == "wann" else "npp")
            clause = replace(clause, time=NOTHING) if german == "wann" else clause
        return clause, english, german

    def about_thing(self, subject: Nominal, verbs: str) -> tuple[Clause, Noun]:
        """A clause in the past without its object, and that object."""
        clause = self.clause(subject, "p", verbs, slot="acc")
        thing = clause.objects[-1].nominal
        if isinstance(thing, NounPhrase) and not thing.noun.mass:
            return replace(clause, objects=clause.objects[:-1]), thing.noun
        return self.about_thing(subject, verbs)

    # Sentences

    def said_or_asked(self, clause: Clause, asking: float = 0.25) -> Pair:
        """A statement, or sometimes a question, but not about the speaker."""
        if (
            clause.fronted
            or clause.negated
            or clause.subject.pronoun in {"I", "we"}
            or not self.chance(asking)
        ):
            return finish(say(clause))
        return finish(ask(clause), "?")

    def statement(self) -> Pair:
        subject = self.subject()
        clause = self.clause(
            subject, "mmmlf" if subject.pronoun == "you" else "nnnppppfhhhmmmsslla", front=0.35
        )
        return finish(say(self.denied(clause) if self.chance(0.15) else clause))

    def question(self) -> Pair:
        if self.chance(0.1):
            clause = self.wish(PRONOUNS[self.choose(("I", "we"))], CAN, LISTS["free time"])
        else:
            clause = self.clause(self.subject("you you you he she they"), "nnppfmmmsla")
        return finish(ask(clause), "?")

    def open_question(self) -> Pair:
        if self.chance(0.2):
            return finish(say(self.clause(WHO, "nnppmf")), "?")
        clause, english, german = self.asked(self.subject("you you you he she they"))
        return finish(ask(clause, english, german), "?")

    def command(self) -> Pair:
        """To a friend: "Please open the door.", "Do not forget your umbrella!", "Let us go home!" """
        draw = self.random.random()
        if draw < 0.4:
            clause = self.clause(PRONOUNS["we"], "a")
            clause = clause if self.chance(0.5) else replace(clause, time=NOTHING)
            return finish(
                Words("let us", "lass uns")
                + Words(english_infinitive(clause), german_infinitive(clause)),
                "!",
            )
        if draw < 0.6:
            verb = self.choose(
                [
                    verb
                    for verb in VERBS
                    if "d" in verb.uses and verb.english in LISTS["forbidden"].replace("_", " ")
                ]
            )
            clause = replace(
                self.fill(Clause(PRONOUNS["you"], verb), verb.frames[0][0]), negated=True
            )
            return finish(
                Words("do not", "") + Words(english_infinitive(clause), german_imperative(clause)),
                "!",
            )
        clause = self.clause(PRONOUNS["you"], "i")
        order = Words(
            english_infinitive(clause), german_imperative(replace(clause, time=Words("", "bitte")))
        )
        if "k" in clause.verb.uses or self.chance(0.4):
            return finish(replace(order, german=german_imperative(clause)), "!")
        return finish(Words("please", "") + order)

    def description(self) -> Pair:
        """A description of a thing or a person."""
        negated = self.chance(0.15)
        if self.chance(0.35):
            past = self.chance(0.4)
            clause = replace(
                self.feeling(self.subject(), "feeling"), tense="past" if past else "present"
            )
            clause = replace(
                clause, time=self.choose(WORDS["past"][:3] if past else (NOTHING, WORDS["now"][1]))
            )
        else:
            noun = self.choose(
                [
                    noun
                    for noun in NOUNS
                    if noun not in GROUPS["person"] and self.quality(noun) != NOTHING
                ]
            )
            owned = noun not in expand("place,dish,drink,tree")
            plural = not NOUNS[noun].mass and self.chance(0.15)
            subject = self.phrase(
                noun,
                "the the this my your his our" if owned else "the the this",
                plural,
                described=0,
            )
            clause = Clause(
                subject, BE, complement=self.quality(noun, "-" if negated else "- - very very too")
            )
        return self.said_or_asked(replace(clause, negated=negated))

    def comparison(self) -> Pair:
        """ "The dog is bigger than the cat.", "Anna is as old as her friend." """
        if self.chance(0.5):
            first = self.subject("he she")
            second, traits = (
                self.people(first),
                [word for word in ADJECTIVES if word.english in TRAITS],
            )
        else:
            nouns = self.random.sample(
                GROUPS[self.choose(("animal", "furniture", "clothes", "text", "place", "food"))], 2
            )
            first, second = (self.phrase(noun, "the the the this", described=0) for noun in nouns)
            traits = [
                word
                for word in ADJECTIVES
                if word.nouns.issuperset(nouns) and word.english not in COLORS | {"little"}
            ]
        if not traits:
            return self.comparison()
        trait = self.choose(traits)
        than = Words(second.english(is_object=True), second.german())
        if self.chance(0.3):
            complement = Words(f"as {trait.english} as", f"so {trait.german} wie") + than
        else:
            complement = (
                Words(f"{trait.english_comparative} than", f"{trait.german_comparative} als") + than
            )
        return self.said_or_asked(Clause(first, BE, complement=complement), 0.1)

    def profession(self) -> Pair:
        """In German, professions have no article, and a separate form for women."""
        subject = self.other()
        if (
            subject.pronoun not in {"he", "she"}
            or subject.english().split()[-1] in LISTS["professionals"].split()
        ):
            return self.profession()
        profession = self.choose(
            WORDS["profession" if subject.pronoun == "he" else "profession of a woman"]
        )
        if self.chance(0.5):
            return finish(
                say(
                    Clause(
                        subject,
                        SPECIAL["werden"],
                        complement=profession,
                        modal=self.choose((WANT, WANT, WISH)),
                    )
                )
            )
        return self.said_or_asked(
            Clause(subject, BE, self.choose(("present", "present", "past")), complement=profession)
        )

    def location(self) -> Pair:
        """On the table, or onto it: dative and accusative after the same preposition."""
        kind = self.choose(("thing", "thing", "animal", "leap", "hide", "put"))
        if kind == "put":
            clause = replace(
                self.clause(self.subject(), "npm", "put", front=0.35),
                complement=self.spot("spots", "accusative"),
            )
        elif kind == "thing":
            verb = self.choose((LIE, STAND))
            subject = self.phrase(
                self.choose(LISTS["lying" if verb == LIE else "standing"].split()),
                "the the my your our a this",
            )
            clause = Clause(subject, verb, complement=self.spot("spots", "dative"))
        else:
            subject = self.phrase(
                self.choose(("dog", "cat")), "the the the our my a this Anna's Tom's"
            )
            if kind == "animal":
                verb = SPECIAL[self.choose(("sitzen", "schlafen"))]
                clause = Clause(
                    subject,
                    verb,
                    "progressive",
                    place=self.spot(self.choose(("perches", "perches", "outdoors")), "dative"),
                )
                clause = self.timed(clause, "now", 0.2, 0.4)
            else:
                verb, spots = (
                    (SPECIAL["springen"], "leaps")
                    if kind == "leap"
                    else (SPECIAL["laufen"], "hiding places")
                )
                clause = Clause(subject, verb, "past", complement=self.spot(spots, "accusative"))
        return finish(say(clause))

    def because(self) -> Pair:
        subject = self.somebody()
        reason_of = self.choose((self.staying, self.leaving, self.mood))
        main, reason = reason_of(subject, PRONOUNS[subject.pronoun])
        return finish(say(main) + after("because", "weil", reason))

    def therefore(self) -> Pair:
        """The reason first, then its consequence."""
        subject = self.somebody()
        main, reason = self.choose((self.staying, self.leaving))(PRONOUNS[subject.pronoun], subject)
        return finish(say(reason) + Words(",", ",") + say(main, "so", "deshalb"))

    def but(self) -> Pair:
        """A wish and an obstacle."""
        subject = self.somebody()
        same = PRONOUNS[subject.pronoun]
        outing = self.chance(0.5)
        wish = self.wish(
            subject, self.choose((WANT, WANT, WISH)), LISTS["outings"] if outing else ""
        )
        hindrances = [self.having_time(same, "no"), self.wish(same, MUST, LISTS["duties"])]
        hindrances += (
            [self.feeling(same), self.weather("progressive", good=False)] if outing else []
        )
        return finish(say(wish) + Words(", but", ", aber") + say(self.choose(hindrances)))

    def both(self) -> Pair:
        """Two people do two things, or one person does two things in sequence."""
        first, second = self.subject(), self.other()
        kind = self.choose(("together", "together", "then", "morning"))
        if kind == "then":
            earlier, later = (
                replace(self.clause(person, "p"), time=NOTHING)
                for person in (second, PRONOUNS[second.pronoun])
            )
            return finish(
                say(earlier, "first", "zuerst") + Words(",", ",") + say(later, "then", "dann")
            )
        if kind == "morning":
            unsaid = Pronoun(first.pronoun, "", "", "", is_name=True)
            later = replace(
                self.clause(first, "h", LISTS["mornings"]),
                subject=unsaid,
                time=NOTHING,
                frequency=NOTHING,
            )
            return finish(say(self.clause(first, "h", "get_up")) + Words("and", "und") + say(later))
        if first.english() == second.english():
            return self.both()
        use = self.choose("nnp")
        clauses = [replace(self.clause(person, use), time=NOTHING) for person in (first, second)]
        return finish(say(clauses[0]) + Words(", and", ", und") + say(clauses[1]))

    def that(self) -> Pair:
        """What a person knows, thinks, hopes or says."""
        subject = self.subject("I I I I you he she we they")
        verb = self.choose(
            (
                "wissen",
                "glauben",
                "glauben",
                "hoffen",
                "sein",
                "wissen" if subject.pronoun in {"I", "you"} else "sagen",
            )
        )
        glad = Words("glad", "froh") if verb == "sein" else NOTHING
        matrix = Clause(
            subject, SPECIAL[verb], complement=glad, negated=verb == "glauben" and self.chance(0.3)
        )
        what = self.clause(self.other(), "fffa" if verb == "hoffen" else "npphsfma")
        if verb == "hoffen" and self.chance(0.3):
            what = self.wish(self.other(), CAN, LISTS["free time"])
        elif self.chance(0.1):
            what = self.weather("future" if verb == "hoffen" else "progressive", self.chance(0.5))
        words = after("that", "dass", what)
        if subject.pronoun == "you" and not matrix.negated and self.chance(0.6):
            return finish(ask(matrix) + words, "?")
        return finish(say(matrix) + words)

    def indirect(self) -> Pair:
        """Indirect questions: whether, where, when, why."""
        asking = Clause(
            self.other(),
            SPECIAL["fragen"],
            self.choose(("progressive", "past")),
            (Object(PRONOUNS[self.choose(("I", "we"))], "accusative"),),
        )
        matrix, mark = self.choose(
            [
                (say(Clause(PRONOUNS["I"], SPECIAL["wissen"], negated=True)), "."),
                (ask(Clause(PRONOUNS["you"], SPECIAL["wissen"])), "?"),
                (say(asking), "."),
            ]
        )
        clause, english, german = (
            (self.clause(self.other(), "npmfsa"), "whether", "ob")
            if self.chance(0.6)
            else self.asked(self.other())
        )
        return finish(matrix + after(english, german, clause), mark)

    def condition(self) -> Pair:
        """ "If it rains, we will stay at home." """
        subject = self.somebody("I we you")
        same = PRONOUNS[subject.pronoun]
        kind = self.choose(("weather", "weakness", "time"))
        if kind == "weather":
            good = self.chance(0.5)
            condition = self.timed(self.weather("present", good), "arranged", 0.3)
            main = self.wish(
                same, self.choose((CAN, WANT, SHOULD)), LISTS["outings" if good else "indoors"]
            )
            main = replace(main, modal=None, tense="future") if self.chance(0.5) else main
        elif kind == "weakness":
            condition = self.feeling(subject)
            main = self.choose(
                (Clause(same, STAY, place=self.place("home", same)), self.going(same, "bed"))
            )
            main = replace(main, modal=self.choose((SHOULD, MUST)), tense="present")
        else:
            condition = self.having_time(subject)
            main = self.wish(same, self.choose((CAN, WANT, SHOULD)), LISTS["free time"])
        words = after("if", "wenn", condition)
        if kind != "weather" or self.chance(0.5):
            return finish(say(main, words.english + ",", words.german.strip(", ") + ","))
        return finish(say(replace(main, subject=subject)) + words)

    def purpose(self) -> Pair:
        """ "Anna is going to the market to buy apples." """
        subject = self.subject()
        place, verbs = self.errand()
        main = self.going(subject, place)
        if self.chance(0.35):
            main = self.timed(replace(main, tense="past"), "past", 0.4, 0.4)
        else:
            main = self.timed(main, self.choose(("now", "arranged")), 0.4, 0.4)
        aim = replace(self.clause(subject, "n", verbs), time=NOTHING, place=NOTHING)
        return finish(
            say(main)
            + Words(f"to {english_infinitive(aim)}", f", um {german_infinitive(aim, zu=True)}")
        )

    def described_person(self) -> Pair:
        """ "The man who lives in Berlin is my uncle." """
        head = self.phrase(self.choose(LISTS["strangers"].split()), "the", described=0)
        subject = Pronoun(head.pronoun, "who", "who", head.german().split()[0], is_name=True)
        clause = self.clause(subject, "snpp", LISTS["noticed"])
        who = Described(head, Words(english_clause(clause), german_clause(clause, order="final")))
        if self.chance(0.4):
            matrix = self.clause(
                self.subject(), "sp", "know help see call ask visit", slot="people"
            )
            matrix = replace(
                matrix,
                place=NOTHING,
                manner=NOTHING,
                time=NOTHING,
                objects=(Object(who, matrix.objects[0].case),),
            )
            return finish(say(matrix))
        relatives = LISTS[head.noun.gender].split() if head.noun.gender in LISTS else []
        relation = (
            self.phrase(self.choose(relatives), "my his her our Anna's", described=0)
            if relatives and self.chance(0.5)
            else None
        )
        complement = (
            Words(relation.english(), relation.german())
            if relation
            else self.quality(head.noun.english, "- very")
        )
        return finish(say(Clause(who, BE, complement=complement)))

    def described_thing(self) -> Pair:
        """ "The book that Anna bought is long." """
        clause, noun = self.about_thing(self.subject(), LISTS["lasting"])
        head = NounPhrase(noun)
        pronoun = head.german("accusative").split()[0]
        what = Described(
            head, Words(english_clause(clause, "that"), german_clause(clause, pronoun, "final"))
        )
        quality = self.quality(noun.english, "- - very")
        return (
            finish(ask(Clause(what, BE), "where", "wo"), "?")
            if quality == NOTHING
            else finish(say(Clause(what, BE, complement=quality)))
        )

    def existence(self) -> Pair:
        """There is: "es gibt" with the accusative."""
        places, things = self.choose(LISTS["surroundings"].split()).split("=")
        place = self.place(places, PRONOUNS["we"])
        if " a " in place.english:
            return self.existence()
        noun = self.choose([thing for thing in things.split(",") if thing not in place.english])
        plural = self.chance(0.3) and noun not in GROUPS["place"]
        phrase = self.phrase(noun, "two three four many no" if plural else "a a a no", plural)
        opening = Words("there are" if plural else "there is", "")
        thing = Words(phrase.english(), phrase.german("accusative"))
        if phrase.determiner in {"a", "many"} and self.chance(0.3):
            return finish(
                Words("are there" if plural else "is there", "gibt es")
                + Words(thing.english, place.german)
                + Words(place.english, thing.german),
                "?",
            )
        return finish(
            opening
            + Words(thing.english, place.german + " gibt es")
            + Words(place.english, thing.german)
        )

    def whereabouts(self) -> Pair:
        """A question about a thing, and an answer with "it"; the German pronoun has the noun's gender."""
        verb = self.choose((LIE, STAND))
        thing = self.phrase(
            self.choose(LISTS["lying" if verb == LIE else "standing"].split()),
            "the the my your his her our",
            described=0.1,
        )
        question = ask(Clause(thing, BE), "where", "wo")
        answer = say(Clause(stand_in(thing), verb, complement=self.spot("spots", "dative")))
        return finish(
            Words(question.english + "?", question.german + "?")
            + Words(capital(answer.english), capital(answer.german))
        )

    def search(self) -> Pair:
        """ "Anna is looking for her key, but she cannot find it." """
        person, past = self.somebody(), self.chance(0.4)
        search = replace(
            self.clause(person, "p" if past else "n", "look_for", slot="acc:key"), time=NOTHING
        )
        thing = search.objects[0].nominal
        if not isinstance(thing, NounPhrase) or not thing.known:
            return self.search()
        it = Object(stand_in(thing), "accusative")
        finding = Clause(
            PRONOUNS[person.pronoun],
            SPECIAL["finden"],
            "past" if past else "present",
            (it,),
            modal=CAN,
            negated=True,
        )
        return finish(say(search) + Words(", but", ", aber") + say(finding))

    def contrast(self) -> Pair:
        """ "The coat is beautiful, but it is too expensive." """
        nouns = [
            noun
            for noun in NOUNS
            if all(self.quality(noun, "-", words) != NOTHING for words in (PRAISE, FLAWS))
        ]
        noun = self.choose([noun for noun in nouns if noun not in GROUPS["person"]])
        sides = [self.quality(noun, "-", PRAISE), self.quality(noun, "too very", FLAWS)]
        if self.chance(0.3):
            sides = [self.quality(noun, "-", FLAWS), self.quality(noun, "very -", PRAISE)]
        if {side.english.split()[-1] for side in sides} in [
            set(pair.split(",")) for pair in LISTS["opposites"].split()
        ]:
            return self.contrast()
        thing = self.phrase(
            noun,
            "the this" if NOUNS[noun].mass or noun in GROUPS["place"] else "the the this my our",
            described=0,
        )
        first, second = (
            Clause(thing, BE, complement=sides[0]),
            Clause(stand_in(thing), BE, complement=sides[1]),
        )
        return finish(say(first) + Words(", but", ", aber") + say(second))

    def possession(self) -> Pair:
        """ "My sister has a new bike, and it is very fast." """
        noun = self.choose(expand(LISTS["property"]))
        owner = Clause(
            self.subject(),
            HAVE,
            objects=(Object(self.phrase(noun, "a", described=0), "accusative"),),
        )
        return finish(
            say(owner)
            + Words(", and", ", und")
            + say(
                Clause(
                    stand_in(NounPhrase(NOUNS[noun])), BE, complement=self.quality(noun, "very -")
                )
            )
        )

    def belonging(self) -> Pair:
        subject = self.phrase(
            self.choose(expand("thing,clothes,vehicle,animal,house,garden,book")),
            "the this",
            self.chance(0.2),
        )
        owner = Object(self.people(PRONOUNS["it"]), "dative")
        return self.said_or_asked(
            Clause(subject, SPECIAL["gehören"], objects=(owner,), negated=self.chance(0.2))
        )

    def sky(self) -> Pair:
        """A sentence about the weather."""
        tense, times = USES[self.choose("nnpf")]
        clause = self.timed(self.weather(tense, self.chance(0.5)), times, 0.7, 0.4)
        place = (
            self.place("towns,towns,village,city", PRONOUNS["we"]) if self.chance(0.4) else NOTHING
        )
        return self.said_or_asked(replace(clause, place=place))

    def health(self) -> Pair:
        """ "How is your mother today?" """
        person, time = self.people(PRONOUNS["it"]), self.choose((NOTHING, NOTHING, WORDS["now"][1]))
        question = english_clause(Clause(person, BE), "how", asking=True)
        return finish(Words(question, f"wie geht es {person.german('dative')}") + time, "?")


PATTERNS: dict[Callable[[Writer], Pair], int] = {  # relative frequency of each kind of sentence
    Writer.statement: 26,
    Writer.question: 7,
    Writer.open_question: 7,
    Writer.command: 5,
    Writer.description: 6,
    Writer.comparison: 3,
    Writer.profession: 1,
    Writer.location: 6,
    Writer.because: 6,
    Writer.therefore: 3,
    Writer.but: 3,
    Writer.both: 4,
    Writer.that: 6,
    Writer.indirect: 5,
    Writer.condition: 4,
    Writer.purpose: 4,
    Writer.described_person: 2,
    Writer.described_thing: 2,
    Writer.existence: 3,
    Writer.whereabouts: 2,
    Writer.search: 1,
    Writer.contrast: 2,
    Writer.possession: 1,
    Writer.belonging: 2,
    Writer.sky: 2,
    Writer.health: 1,
}


def normal(text: str) -> str:
    """Letters and digits only, in lower case, to compare two sentences."""
    return re.sub(r"[\W_]", "", text.casefold())


def make_pairs(count: int, seed: int) -> list[Pair]:
    """Pairs; no sentence occurs twice, in either language."""
    writer = Writer(seed)
    seen: set[tuple[int, str]] = set()
    pairs: list[Pair] = []
    while len(pairs) < count:
        (sentence,) = writer.random.choices(list(PATTERNS), list(PATTERNS.values()))
        pair = sentence(writer)
        keys = set(enumerate(map(normal, pair)))
        if not keys & seen:
            seen |= keys
            pairs.append(pair)
    return pairs


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the sample corpus.")
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="the file to write (%(default)s)"
    )
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help="number of sentence pairs (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help="seed of the random numbers (%(default)s)"
    )
    options = parser.parse_args(arguments)
    text = "".join(
        f"{english}\t{german}\n" for english, german in make_pairs(options.pairs, options.seed)
    )
    options.output.write_text(text, encoding="utf-8", newline="\n")
    print(f"{options.output}: {options.pairs} pairs, {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
