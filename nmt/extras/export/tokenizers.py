"""What splits and joins text in a browser, and what warns of translations, as JSON."""

from typing import Any

from nmt.errors import ConfigError
from nmt.extras.export.expressions import to_javascript
from nmt.text import vocabulary
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WordTokenizer
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


def tokenizer_data(tokenizer: Tokenizer) -> Any:
    """Pieces and their scores, or spaCy's rules, or None. Raises: ConfigError: spaCy has none."""
    if isinstance(tokenizer, SubwordTokenizer):
        model = tokenizer.model
        pieces = [i for i in range(len(model)) if i != model.unk_id()]
        # Nine digits tell all numbers of 32 bits apart.
        return [[model.id_to_piece(i), float(f"{model.get_score(i):.9g}")] for i in pieces]
    return _word_rules(tokenizer) if isinstance(tokenizer, WordTokenizer) else None


def _word_rules(tokenizer: WordTokenizer) -> dict[str, Any]:
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
    methods = {"feed": LINE_FEED.finditer, "end": END.finditer, "number": LIST_NUMBER.finditer}
    methods |= {"wide": WIDE_END.finditer, "tight": TIGHT_END.finditer}
    others = {"title": to_javascript(TITLE.fullmatch), "begins": to_javascript(BEGINS.match)}
    digits = "".join(filter(str.isdecimal, map(chr, range(0x20000))))  # of many scripts
    others |= {name: to_javascript(method) for name, method in methods.items()}
    return {"ordinals": has_ordinals(language), "digits": digits, **others}


def warning_rules() -> dict[str, Any]:
    """Of `warningsOf`: the texts, and the limits by their names in Python."""
    named = (vars(vocabulary) | vars(warnings)).items()
    limits = {name: value for name, value in named if name.startswith(("MAX_", "MIN_"))}
    return {"descriptions": dict(warnings.DESCRIPTIONS), **limits}
