"""What splits and joins text in a browser, and what warns of translations, as JSON; and regular
expressions of Python, as JavaScript writes them.
"""

import re
from re import _parser  # type: ignore[attr-defined] # reads a pattern as Python does
from typing import Any

from nmt.errors import ConfigError
from nmt.text import vocabulary
from nmt.text.tokenizers import (
    CharacterTokenizer,
    SubwordTokenizer,
    Tokenizer,
    WordTokenizer,
)
from nmt.texts import warnings
from nmt.texts.sentences import (
    BEGINS,
    END,
    LINE_FEED,
    LIST_NUMBER,
    TIGHT_END,
    TITLE,
    WIDE_END,
    has_ordinals,
)

_WORD, _SPACE = r"\p{L}\p{N}_", r"\p{White_Space}\x1c-\x1f"
# How JavaScript writes each part of a regular expression; what it lacks is a KeyError.
_PARTS: dict[str, Any] = {
    "LITERAL": lambda code: chr(code) if chr(code).isalnum() else f"\\u{{{code:x}}}",
    "NOT_LITERAL": lambda code: f"[^\\u{{{code:x}}}]",
    "RANGE": lambda ends: f"\\u{{{ends[0]:x}}}-\\u{{{ends[1]:x}}}",
    "NEGATE": lambda _: "^",
    "ANY": lambda _: r"[^\n]",
    "IN": lambda items: f"[{_convert(items)}]",
    "CATEGORY": lambda name: _PARTS[str(name)],
    "CATEGORY_DIGIT": r"\p{Nd}",
    "CATEGORY_SPACE": f"[{_SPACE}]",
    "CATEGORY_NOT_SPACE": f"[^{_SPACE}]",
    "CATEGORY_WORD": f"[{_WORD}]",
    "CATEGORY_NOT_WORD": f"[^{_WORD}]",
    "AT": lambda name: _PARTS[str(name)],
    "AT_BEGINNING": "^",
    "AT_END": "$",  # no text ends with a line feed
    "AT_BOUNDARY": f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    "BRANCH": lambda value: f"(?:{'|'.join(map(_convert, value[1]))})",
    "SUBPATTERN": lambda value: f"({'' if value[0] else '?:'}{_convert(value[3])})",
    "MAX_REPEAT": lambda value: (
        f"(?:{_convert(value[2])}){{{value[0]},{str(value[1]).strip('MAXREPT')}}}"
    ),
    "MIN_REPEAT": lambda value: _PARTS["MAX_REPEAT"](value) + "?",
    "ASSERT": lambda value: f"(?{'=' if value[0] > 0 else '<='}{_convert(value[1])})",
    "ASSERT_NOT": lambda value: f"(?{'!' if value[0] > 0 else '<!'}{_convert(value[1])})",
}


def tokenizer_data(tokenizer: Tokenizer) -> dict[str, Any]:
    """Its settings, with `data`: pieces and their scores, or spaCy's rules, or None for characters.

    Raises:
        ConfigError: a browser cannot split text in this way.
    """
    data = None
    if isinstance(tokenizer, SubwordTokenizer):
        model = tokenizer.model
        pieces = [i for i in range(len(model)) if i != model.unk_id()]
        # Nine digits tell all numbers of 32 bits apart.
        data = [[model.id_to_piece(i), float(f"{model.get_score(i):.9g}")] for i in pieces]
    elif isinstance(tokenizer, WordTokenizer):
        data = _word_rules(tokenizer)
    elif not isinstance(tokenizer, CharacterTokenizer):
        raise ConfigError(f"tokenizer.kind: {tokenizer.config.kind} cannot run in a browser")
    return {"kind": tokenizer.config.kind, "lowercase": tokenizer.config.lowercase, "data": data}


def _word_rules(tokenizer: WordTokenizer) -> Any:
    rules: Any = tokenizer.pipeline.tokenizer
    if type(rules).__module__ != "spacy.tokenizer":
        raise ConfigError(
            f"tokenizer.kind: words of language {tokenizer.language} cannot be split in a browser; "
            "train with tokenizer.kind=unigram"
        )
    names = ("prefix_search", "suffix_search", "infix_finditer", "token_match", "url_match")
    methods = {name: getattr(rules, name) for name in names}
    word = rules.vocab.strings["ORTH"]
    plain = type(rules)(rules.vocab, **methods)
    searches = plain.find_prefix, plain.find_suffix, plain.find_infix
    cut = [text for text in rules.rules if " " in text or any(find(text) for find in searches)]
    return {
        "exceptions": {text: [part[word] for part in parts] for text, parts in rules.rules.items()},
        "patterns": [" ".join(token.text for token in plain(text)) for text in cut],
        **{name: method and to_javascript(method) for name, method in methods.items()},
    }


def sentence_rules(language: str) -> dict[str, Any]:
    """Of `findSentences`."""
    methods = {
        "feed": LINE_FEED.finditer,
        "end": END.finditer,
        "number": LIST_NUMBER.finditer,
        "wide": WIDE_END.finditer,
        "tight": TIGHT_END.finditer,
        "title": TITLE.fullmatch,
        "begins": BEGINS.match,
    }
    rules = {name: to_javascript(method) for name, method in methods.items()}
    digits = "".join(filter(str.isdecimal, map(chr, range(0x20000))))  # of many scripts
    return {"ordinals": has_ordinals(language), "digits": digits, **rules}


def warning_rules() -> dict[str, Any]:
    """Of `warningsOf`: the texts, and the limits by their names in Python."""
    named = (vars(vocabulary) | vars(warnings)).items()
    limits = {name: value for name, value in named if name.startswith(("MAX_", "MIN_"))}
    return {"descriptions": dict(warnings.DESCRIPTIONS), **limits}


def to_javascript(method: Any) -> tuple[str, str]:
    """Source and flags of a regular expression that finds what a method of Python's finds."""
    pattern, name = method.__self__, method.__name__
    source = _convert(_parser.parse(pattern.pattern, pattern.flags))
    source = {"match": f"^(?:{source})", "fullmatch": f"^(?:{source})$"}.get(name, source)
    return source, "v" + "i" * bool(pattern.flags & re.I) + "g" * (name == "finditer")


def _convert(items: Any) -> str:
    return "".join(_PARTS[str(name)](value) for name, value in items)
