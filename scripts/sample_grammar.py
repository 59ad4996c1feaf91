"""A small grammar of English and German, for the sample corpus.

A sentence is first data (a `Clause`: who does what to whom, where and when), which is then rendered
in both languages. `english_clause` and `german_clause` order the words; `NounPhrase` and `Verb`
inflect them.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal, Protocol

Case = Literal["nominative", "accusative", "dative"]
Order = Literal["second", "first", "final"]  # position of the conjugated verb in a German clause
Tense = Literal["present", "progressive", "past", "future"]
Pair = tuple[str, str]  # an English sentence and its German translation


def join(*words: str) -> str:
    """The words that are not empty, separated by spaces."""
    return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Words:
    """Inflected words in English and in German."""

    english: str
    german: str

    def __add__(self, other: "Words") -> "Words":
        return Words(join(self.english, other.english), join(self.german, other.german))


NOTHING = Words("", "")


# --- Nouns, adjectives and determiners
# ------------------------------------------------------------------------------------

Paradigm = dict[tuple[Case, str], str]


def paradigm(nominative: str, accusative: str, dative: str) -> Paradigm:
    """Endings by case and gender (masculine, feminine, neuter, and the plural of all three); "-" is
    no ending.
    """
    rows: dict[Case, str] = {"nominative": nominative, "accusative": accusative, "dative": dative}
    return {
        (case, gender): ending.strip("-")
        for case, row in rows.items()
        for gender, ending in zip("mfnp", row.split(), strict=True)
    }


DEFINITE = paradigm("er ie as ie", "en ie as ie", "em er em en")
INDEFINITE = paradigm("- e - e", "en e - e", "em er em en")
STRONG = paradigm("er e es e", "en e es e", "em er em en")
MIXED = paradigm("er e es en", "en e es en", "en en en en")
WEAK = paradigm("e e e en", "en e e en", "en en en en")

POSSESSIVES = {"I": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}
EIN_WORDS = {
    "a": "ein",
    "no": "kein",
    "my": "mein",
    "your": "dein",
    "his": "sein",
    "her": "ihr",
    "our": "unser",
    "their": "ihr",
}
NUMBERS = {"two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
DETERMINERS: dict[
    str, tuple[str, Paradigm, Paradigm]
] = {  # German stem, its endings, the endings of a following adjective
    "the": ("d", DEFINITE, WEAK),
    "this": ("dies", STRONG, WEAK),
    "many": ("viel", STRONG, STRONG),
    **{english: (german, INDEFINITE, MIXED) for english, german in EIN_WORDS.items()},
}


class Nominal(Protocol):
    """A subject or an object. `pronoun` is the English pronoun for it; the form of the verb depends
    on it.
    """

    @property
    def pronoun(self) -> str: ...

    @property
    def known(self) -> bool:
        """Whether the listener can identify it."""

    def english(self, is_object: bool = False) -> str: ...

    def german(self, case: Case = "nominative") -> str: ...


@dataclass(frozen=True)
class Noun:
    """A noun with its plurals. A weak masculine noun has the form of its plural in all cases except
    the nominative.
    """

    english: str
    english_plural: str
    german: str
    gender: str
    german_plural: str
    weak: bool = False

    @property
    def mass(self) -> bool:
        return self.german_plural == "-"

    def decline(self, case: Case, plural: bool) -> str:
        """The German form."""
        if plural:
            return self.german_plural + (
                "n" if case == "dative" and self.german_plural[-1] not in "ns" else ""
            )
        return self.german_plural if self.weak and case != "nominative" else self.german


@dataclass(frozen=True)
class Adjective:
    """An adjective with its comparatives, and the nouns that it fits."""

    english: str
    german: str
    english_comparative: str
    german_comparative: str
    nouns: frozenset[str]

    def decline(self, ending: str) -> str:
        """The German form before a noun."""
        return ("teur" if self.german == "teuer" else self.german) + ending


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its determiner ("" for none; a number; a genitive such as "Anna's") and perhaps
    an adjective.
    """

    noun: Noun
    determiner: str = "the"
    adjective: Adjective | None = None
    plural: bool = False

    @property
    def pronoun(self) -> str:
        return (
            "they"
            if self.plural or self.noun.gender == "p"
            else {"m": "he", "f": "she", "n": "it"}[self.noun.gender]
        )

    @property
    def known(self) -> bool:
        return self.determiner in {
            "the",
            "this",
            *POSSESSIVES.values(),
        } or self.determiner.endswith("'s")

    def english(self, is_object: bool = False) -> str:
        plural = self.pronoun == "they"
        determiner = "these" if plural and self.determiner == "this" else self.determiner
        words = join(
            self.adjective.english if self.adjective else "",
            self.noun.english_plural if plural else self.noun.english,
        )
        return join("an" if determiner == "a" and words[0] in "aeiou" else determiner, words)

    def german(self, case: Case = "nominative") -> str:
        plural = self.pronoun == "they"
        cell = case, "p" if plural else self.noun.gender
        if self.determiner in DETERMINERS:
            stem, endings, adjective_endings = DETERMINERS[self.determiner]
            determiner = stem + endings[cell]
        else:
            determiner, adjective_endings = (
                NUMBERS.get(self.determiner, self.determiner.replace("'", "")),
                STRONG,
            )
        adjective = self.adjective.decline(adjective_endings[cell]) if self.adjective else ""
        return join(determiner, adjective, self.noun.decline(case, plural))


@dataclass(frozen=True)
class Described:
    """A noun phrase with a relative clause."""

    head: NounPhrase
    clause: Words
    known: bool = True

    @property
    def pronoun(self) -> str:
        return self.head.pronoun

    def english(self, is_object: bool = False) -> str:
        return join(self.head.english(), self.clause.english)

    def german(self, case: Case = "nominative") -> str:
        return f"{self.head.german(case)}, {self.clause.german},"


@dataclass(frozen=True)
class Pronoun:
    """A personal, relative or question pronoun; also a name, which is the same in all cases."""

    pronoun: str
    subject: str
    object: str
    forms: str  # German: nominative, accusative, dative
    is_name: bool = False
    known: bool = True

    def english(self, is_object: bool = False) -> str:
        return self.object if is_object else self.subject

    def german(self, case: Case = "nominative") -> str:
        return (
            self.forms
            if self.is_name
            else self.forms.split()[("nominative", "accusative", "dative").index(case)]
        )


def name(pronoun: str, english: str, german: str = "") -> Pronoun:
    return Pronoun(pronoun, english, english, german or english, is_name=True)


PRONOUNS = {
    subject: Pronoun(subject, subject, other, german)
    for subject, other, german in (
        ("I", "me", "ich mich mir"),
        ("you", "you", "du dich dir"),
        ("he", "him", "er ihn ihm"),
        ("she", "her", "sie sie ihr"),
        ("it", "it", "es es ihm"),
        ("we", "us", "wir uns uns"),
        ("they", "them", "sie sie ihnen"),
    )
}
WHO = Pronoun("he", "who", "who", "wer wen wem")


def stand_in(phrase: NounPhrase) -> Pronoun:
    """The pronoun for a thing: "it" in English; in German it has the noun's gender."""
    return replace(
        PRONOUNS["they" if phrase.pronoun == "they" else "it"], forms=PRONOUNS[phrase.pronoun].forms
    )


def is_light(nominal: Nominal) -> bool:
    """Whether it is a pronoun; German puts pronouns first."""
    return isinstance(nominal, Pronoun) and not nominal.is_name


def deny(nominal: Nominal) -> Nominal:
    """ "kein" instead of "ein" or no article."""
    return (
        replace(nominal, determiner="no")
        if isinstance(nominal, NounPhrase) and nominal.determiner in {"a", ""}
        else nominal
    )


CONTRACTIONS = {
    "in dem": "im",
    "in das": "ins",
    "an dem": "am",
    "zu dem": "zum",
    "zu der": "zur",
    "bei dem": "beim",
    "von dem": "vom",
}


def prepositional(english: str, german: str, case: Case, nominal: Nominal) -> Words:
    """A preposition with its noun: "at the station", "am Bahnhof"."""
    text = f"{german} {nominal.german(case)}"
    for long, short in CONTRACTIONS.items():
        text = re.sub(rf"^{long}\b", short, text)
    return Words(join(english, nominal.english(is_object=True)), text)


# --- Verbs
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
# ----------------------------------------------------------------------------------------------------------------

IRREGULAR = {  # ich, du, er, wir, sie
    "sein": "bin bist ist sind sind",
    "haben": "habe hast hat haben haben",
    "werden": "werde wirst wird werden werden",
    "wissen": "weiß weißt weiß wissen wissen",
    "mögen": "mag magst mag mögen mögen",
    "können": "kann kannst kann können können",
    "müssen": "muss musst muss müssen müssen",
    "wollen": "will willst will wollen wollen",
    "dürfen": "darf darfst darf dürfen dürfen",
    "sollen": "sollte solltest sollte sollten sollten",
    "möchten": "möchte möchtest möchte möchten möchten",
}
PRETERITE = {  # of verbs that are rarely used in the perfect
    "sein": "war warst war waren waren",
    "haben": "hatte hattest hatte hatten hatten",
    "können": "konnte konntest konnte konnten konnten",
    "müssen": "musste musstest musste mussten mussten",
    "wollen": "wollte wolltest wollte wollten wollten",
    "dürfen": "durfte durftest durfte durften durften",
}
ENGLISH_BE = {"I": "am was", "you": "are were", "we": "are were", "they": "are were"}
AUXILIARIES = {"be", "can", "should", "will", "would"}  # English verbs that need no "do"
MOVABLE = {"on", "off", "up"}  # "turn on the lamp", but "turn it on"


def select(forms: str, pronoun: str) -> str:
    """Choose from the five forms for ich, du, er, wir, sie."""
    return forms.split()[{"I": 0, "you": 1, "we": 3, "they": 4}.get(pronoun, 2)]


@dataclass(frozen=True)
class Verb:
    """An English verb ("pick up") and a German one ("ab|holen").

    `uses` lists the situations that it fits (see USES), `frames` its possible complements.
    """

    english: str
    past: str
    progressive: str
    german: str
    third: str
    participle: str
    uses: str = ""
    frames: tuple[tuple[str, ...], ...] = ((),)

    @property
    def base(self) -> str:
        return self.english.partition(" ")[0]

    @property
    def tail(self) -> str:
        return self.english.partition(" ")[2]

    @property
    def particle(self) -> str:
        return self.german.rpartition("|")[0]

    @property
    def simple(self) -> str:
        """The German infinitive without its particle."""
        return self.german.rpartition("|")[2]

    def infinitive(self, zu: bool = False) -> str:
        """ "anrufen", or with zu "anzurufen"."""
        return self.particle + ("zu" if self.particle else "zu ") * zu + self.simple

    def present(self, pronoun: str) -> str:
        """The German present tense, without the particle; du "rufst", but "liest" and "sitzt"."""
        root = self.third.removesuffix("t")
        second = root + ("t" if root[-1] in "sßz" else "st")
        return select(
            IRREGULAR.get(
                self.simple, f"{self.simple[:-1]} {second} {self.third} {self.simple} {self.simple}"
            ),
            pronoun,
        )

    @property
    def imperative(self) -> str:
        """ "kauf", "warte"; only the vowel change from e to i remains: "hilf", but "trag"."""
        root, third = self.simple.removesuffix("en"), self.third.removesuffix("t")
        if "i" in third and "i" not in root:
            return third
        return root + ("e" if root[-1] in "td" else "")

    @property
    def auxiliary(self) -> str:
        return "sein" if self.participle.startswith("ist ") else "haben"


def english_finite(base: str, past_form: str, pronoun: str, past: bool) -> str:
    """The conjugated form: "am", "can", "goes", "called"."""
    if base == "be":
        return ENGLISH_BE.get(pronoun, "is was").split()[past]
    if past or base in AUXILIARIES or pronoun in ENGLISH_BE:
        return past_form if past else base
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("o", "s", "sh", "ch", "x")) else "s")


@dataclass(frozen=True)
class Modal:
    """A modal verb; in English, `link` comes between it and the infinitive."""

    english: str
    past: str
    link: str
    german: str


CAN, MUST, WANT = (
    Modal("can", "could", "", "können"),
    Modal("have", "had", "to", "müssen"),
    Modal("want", "wanted", "to", "wollen"),
)
SHOULD, WISH = Modal("should", "", "", "sollen"), Modal("would", "", "like to", "möchten")
ALLOWED = Modal("be", "was", "allowed to", "dürfen")
LIKE = Modal("like", "liked", "to", "")  # in German the adverb "gern"


# --- Clauses --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Object:
    """A nominal in the case that the verb requires."""

    nominal: Nominal
    case: Case


@dataclass(frozen=True)
class Clause:
    """One verb with its subject, objects and adverbials, not yet in order."""

    subject: Nominal
    verb: Verb
    tense: Tense = "present"
    objects: tuple[Object, ...] = ()
    complement: Words = NOTHING  # direction, beneficiary, or predicate
    place: Words = NOTHING
    manner: Words = NOTHING
    frequency: Words = NOTHING
    time: Words = NOTHING
    fronted: bool = False  # the time comes first
    modal: Modal | None = None
    negated: bool = False


def english_chain(clause: Clause) -> tuple[str, str, str]:
    """The conjugated verb, its past form, and the verbs after it."""
    verb, modal = clause.verb, clause.modal
    if modal:
        return modal.english, modal.past, join(modal.link, verb.base)
    if clause.tense == "future":
        return "will", "", verb.base
    if clause.tense == "progressive":
        return "be", "", verb.progressive
    return verb.base, verb.past, ""


def english_rest(clause: Clause) -> str:
    """The rest after the verbs: objects, place, manner, time."""
    tail = clause.verb.tail
    objects = [part.nominal.english(is_object=True) for part in clause.objects]
    tail_last = tail == "along" or (
        tail in MOVABLE and all(is_light(part.nominal) for part in clause.objects)
    )
    ordered = [*objects, tail] if tail_last else [tail, *objects]
    time = "" if clause.fronted else clause.time.english
    return join(
        *ordered, clause.complement.english, clause.place.english, clause.manner.english, time
    )


def english_clause(clause: Clause, opening: str = "", asking: bool = False) -> str:
    """Subject, verbs, rest; in a question the auxiliary comes before the subject."""
    head, past_form, rest = english_chain(clause)
    pronoun, past = clause.subject.pronoun, clause.tense == "past"
    if head in AUXILIARIES:
        auxiliary, verbs = english_finite(head, past_form, pronoun, past), rest
    elif asking or clause.negated:
        auxiliary, verbs = english_finite("do", "did", pronoun, past), join(head, rest)
    else:
        auxiliary, verbs = "", join(english_finite(head, past_form, pronoun, past), rest)
    subject, negation, time = (
        clause.subject.english(),
        "not" if clause.negated else "",
        clause.time.english if clause.fronted else "",
    )
    start = (auxiliary, subject) if asking else (subject, auxiliary)
    return join(
        opening, time, *start, negation, clause.frequency.english, verbs, english_rest(clause)
    ).replace("can not ", "cannot ")


def english_infinitive(clause: Clause) -> str:
    """The clause without its subject: "buy a hat in the city"."""
    return join(clause.verb.base, english_rest(clause))


def german_middle(clause: Clause) -> str:
    """The middle field: pronouns, known objects and time, nicht, manner, place, new objects, complement.

    Known objects come before the time if a negation or a frequency follows it, otherwise after it.
    """
    gern = "gern" if clause.modal == LIKE else ""
    denied = clause.negated and not gern  # "nicht gern" instead of "kein"
    objects = [Object(deny(part.nominal), part.case) if denied else part for part in clause.objects]
    light = [part.nominal.german(part.case) for part in objects if is_light(part.nominal)]
    known = [
        part.nominal.german(part.case)
        for part in objects
        if part.nominal.known and not is_light(part.nominal)
    ]
    new = [part.nominal.german(part.case) for part in objects if not part.nominal.known]
    nicht = "nicht" if clause.negated and not any(text.startswith("kein") for text in new) else ""
    times = ["" if clause.fronted else clause.time.german, clause.frequency.german]
    early = [*known, *times] if clause.negated or clause.frequency.german else [*times, *known]
    return join(
        *light,
        *early,
        nicht,
        gern,
        clause.manner.german,
        clause.place.german,
        *new,
        clause.complement.german,
    )


def german_chain(clause: Clause) -> tuple[str, str]:
    """The conjugated verb, and the verbs or the particle at the end of the clause."""
    verb, pronoun, past = clause.verb, clause.subject.pronoun, clause.tense == "past"
    if clause.modal and clause.modal.german:
        return select(
            (PRETERITE if past else IRREGULAR)[clause.modal.german], pronoun
        ), verb.infinitive()
    if clause.tense == "future":
        return select(IRREGULAR["werden"], pronoun), verb.infinitive()
    if past and verb.german in PRETERITE:
        return select(PRETERITE[verb.german], pronoun), ""
    if past:
        return select(IRREGULAR[verb.auxiliary], pronoun), verb.participle.removeprefix("ist ")
    return verb.present(pronoun), verb.particle


def german_clause(clause: Clause, opening: str = "", order: Order = "second") -> str:
    """The conjugated verb is second in a statement, first in a question without a question word, and last after a conjunction."""
    finite, closing = german_chain(clause)
    subject, middle = clause.subject.german(), german_middle(clause)
    opening = join(opening, clause.time.german if clause.fronted else "")
    if order == "first":
        return join(finite, subject, middle, closing)
    if order == "second":
        return (
            join(opening, finite, subject, middle, closing)
            if opening
            else join(subject, finite, middle, closing)
        )
    verbs = closing + finite if closing == clause.verb.particle else join(closing, finite)
    return join(opening, subject, middle, verbs)


def german_infinitive(clause: Clause, zu: bool = False) -> str:
    """The clause without its subject: "in der Stadt einen Hut kaufen"."""
    return join(german_middle(clause), clause.verb.infinitive(zu))


def german_imperative(clause: Clause) -> str:
    return join(clause.verb.imperative, german_middle(clause), clause.verb.particle)


# --- From clauses to sentences --------------------------------------------------------------------------------------------


def say(clause: Clause, english: str = "", german: str = "") -> Words:
    """A main clause, perhaps after opening words; these invert German subject and verb."""
    return Words(english_clause(clause, english), german_clause(clause, german))


def ask(clause: Clause, english: str = "", german: str = "") -> Words:
    """A question, with or without a question word."""
    return Words(
        english_clause(clause, english, asking=True),
        german_clause(clause, german, "second" if german else "first"),
    )


def after(english: str, german: str, clause: Clause) -> Words:
    """A subordinate clause after its conjunction."""
    return Words(english_clause(clause, english), ", " + german_clause(clause, german, "final"))


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def finish(words: Words, mark: str = ".") -> Pair:
    """The sentence with its capital letter and its final mark."""
    english, german = (
        capital(text.replace(" ,", ",").strip(", ") + mark)
        for text in (words.english, words.german)
    )
    return english, german
