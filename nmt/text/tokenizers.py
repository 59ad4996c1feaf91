"""Text to tokens and back without loss: `join(split(text)) == normalize(text)` for every text.

The normal form is one line in Unicode NFC, without invisible characters.

To add a tokenizer: a subclass of `Tokenizer`, and its row in `TOKENIZERS` of nmt/config/parts.py.
"""

import importlib.util
import io
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import ClassVar, Literal

from nmt.config.parts import TOKENIZERS
from nmt.config.schema import TokenizerConfig
from nmt.errors import DataError, first_line, in_one_line, pass_on_lack_of_memory
from nmt.files import MAX_TEXT_BYTES, check_content

Side = Literal["src", "tgt"]
SIDES: tuple[Side, Side] = ("src", "tgt")

JOINER = "￭"  # U+FFED before a word: no space in front of it
SPACE = "▁"  # U+2581 in subwords and characters: a space
MAX_STRINGS = 300_000  # kept by spaCy: about 120 MB

# Repairs, counted in sentences.
CONTROL_CHARACTERS = "control characters"
WHITE_SPACE = "white space"
UNICODE_NFC = "Unicode NFC"
REPAIRS = (CONTROL_CHARACTERS, WHITE_SPACE, UNICODE_NFC)

# Invisible: control characters other than white space, soft hyphen, zero-width space, marks of
# writing direction, word joiner, byte order mark, lone surrogates. The zero-width joiners U+200C
# and U+200D stay: Persian, Hindi and emoji need them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+"
)

FIRST_VOWEL_SIGN = "\u0900"
# The combining signs of the scripts of India and South-East Asia. `\w` lacks them, though words are
# others without them.
_BLOCKS = (range(ord(FIRST_VOWEL_SIGN), 0x1D00), range(0xA800, 0xAC00), range(0x11000, 0x12000))
_VOWEL_SIGNS = "".join(
    chr(code)
    for block in _BLOCKS
    for code in block
    if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
# For character classes of regular expressions: letters, digits, underscore and vowel signs.
WORD_CHARACTERS = rf"\w{_VOWEL_SIGNS}"
# Letters that stand without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, Japanese,
# Chinese.
NO_SPACES = (
    "\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def normalize(text: str) -> str:
    """One line in Unicode NFC without invisible characters, words separated by one space each."""
    return normalize_and_report(text)[0]


def normalize_and_report(text: str) -> tuple[str, list[str]]:
    """The normal form of `text`, and the names of the repairs (see `REPAIRS`) that changed it."""
    # Nearly every sentence passes this fast check: printable characters are neither invisible nor
    # white space, except " ".
    if (
        text.isprintable()
        and "  " not in text
        and text[:1] != " "
        and text[-1:] != " "
        and (text.isascii() or unicodedata.is_normalized("NFC", text))
    ):
        return text, []
    visible = _INVISIBLE.sub("", text)
    spaced = " ".join(visible.split())
    composed = unicodedata.normalize("NFC", spaced)
    steps = (
        (CONTROL_CHARACTERS, text, visible),
        (WHITE_SPACE, visible, spaced),
        (UNICODE_NFC, spaced, composed),
    )
    return composed, [name for name, before, after in steps if before != after]


class Tokenizer(ABC):
    """Splits text of one language into tokens; several threads may share one.

    A subclass is built from (config, language, model). If its row is `learned`, it has a class
    method `learn(texts, config)`; model is the path of the bytes that this returned.

    Attributes:
        config: its section of the configuration.
        mark: a character of tokens that tells about the spaces of the text.
        look_alike: takes its place in the text itself.
        signature: names everything that the tokens depend on.
        language: its code, as in data.direction; "" if it is not known.
    """

    mark: ClassVar[str] = SPACE
    look_alike: ClassVar[str] = "_"
    language = ""

    def __init__(self, config: TokenizerConfig, name: str) -> None:
        """`name`: what the tokens depend on, beside kind and case."""
        self.config = config
        self.signature = f"{config.kind}|{name}|case:{'lower' if config.lowercase else 'mixed'}"

    @classmethod
    def _normalize(cls, text: str, lowercase: bool) -> str:
        text = normalize(text)
        # Lower-casing can decompose letters ("İ"), so normalize again.
        text = normalize(text.lower()) if lowercase else text
        return text.replace(cls.mark, cls.look_alike)

    def normalize(self, text: str) -> str:
        """The text that `split` splits, and that `join` restores."""
        return self._normalize(text, self.config.lowercase)

    def split(self, text: str) -> list[str]:
        """The tokens of a text."""
        return self.split_all([text])[0]

    @abstractmethod
    def split_all(self, texts: Sequence[str]) -> list[list[str]]:
        """`split` for each text, but faster; memory does not grow from call to call."""

    def join(self, tokens: Sequence[str]) -> str:
        """Text on one line from any tokens, also from the output of a model."""
        return " ".join("".join(tokens).replace(SPACE, " ").split())


class WordTokenizer(Tokenizer):
    """spaCy's rules for words and punctuation: "Hallo!" -> ["Hallo", "￭!"]. Other languages get its
    language-independent rules.
    """

    mark, look_alike = JOINER, "■"

    def __init__(self, config: TokenizerConfig, language: str, _model: Path) -> None:
        """Raises: DataError if spaCy needs another package for this language."""
        import spacy
        import spacy.about

        # spaCy's name of the language; "xx" is any.
        self._rules = language if importlib.util.find_spec(f"spacy.lang.{language}") else "xx"
        self._lock = Lock()  # it stores each new word
        other = "" if self._rules == language else f"({self._rules})"
        super().__init__(config, f"spacy:{spacy.about.__version__}|lang:{language}{other}")
        try:
            self.pipeline = spacy.blank(self._rules)
        except ImportError as error:
            raise DataError(
                f"tokenizer.kind: words of language {language}: {in_one_line(error)} (or use "
                "tokenizer.kind=unigram)"
            ) from None

    def split_all(self, texts: Sequence[str]) -> list[list[str]]:
        with self._lock:
            words = [self._words(self.normalize(text)) for text in texts]
            # spaCy stores every word. Its memory zones would free the words, but also clear its
            # cache: with a zone for every few thousand sentences it was ten times slower.
            if len(self.pipeline.vocab.strings) > MAX_STRINGS:
                import spacy

                self.pipeline = spacy.blank(self._rules)
        return words

    def _words(self, text: str) -> list[str]:
        words: list[str] = []
        spaced = True
        for token in self.pipeline.tokenizer(text):
            words.append(token.text if spaced else JOINER + token.text)
            spaced = bool(token.whitespace_)
        return words

    def join(self, tokens: Sequence[str]) -> str:
        parts = [
            token[1:] if token.startswith(JOINER) else f" {token}" for token in tokens if token
        ]
        return " ".join("".join(parts).split())


class SubwordTokenizer(Tokenizer):
    """Pieces that sentencepiece learned from the training data: "▁Hal", "lo", "!". Unseen
    characters are pieces of their own.
    """

    @classmethod
    def learn(cls, texts: Iterable[str], config: TokenizerConfig) -> bytes:
        """A model of `config.size` pieces, or of fewer if there is little text. The same texts give
        the same bytes.

        Raises:
            DataError: there is no text, or it has more different characters than `config.size`.
        """
        texts = [cls._normalize(text, config.lowercase) for text in texts]
        try:
            return _train(texts, config, config.size)
        except RuntimeError as error:
            reason = first_line(error)
        if limit := re.search(r"too high \(\d+\).*<= (\d+)", reason):
            return _train(texts, config, int(limit[1]))
        if characters := re.search(r"required_chars. \d+ vs (\d+)", reason):
            raise DataError(
                f"tokenizer.size: {config.size} is too small, the text has {characters[1]} "
                "different characters"
            )
        raise DataError(f"no subwords can be learned from {len(texts)} sentences ({reason})")

    def __init__(self, config: TokenizerConfig, language: str, model: Path) -> None:
        """Raises: DataError if `model` is missing or damaged."""
        import sentencepiece

        super().__init__(
            config,
            f"sentencepiece:{sentencepiece.__version__}|lang:{language}|size:{config.size}",
        )
        if not model.is_file():
            raise DataError(
                f"{model}: no such file; `nmt prepare` writes this subword model, and each run has "
                "a copy"
            )
        if model.stat().st_size > MAX_TEXT_BYTES:
            raise DataError(
                f"{model}: larger than {MAX_TEXT_BYTES:,} bytes; `nmt prepare` writes this subword "
                "model"
            )
        self.model = sentencepiece.SentencePieceProcessor()
        try:
            self.model.LoadFromSerializedProto(model.read_bytes())
            # UnicodeDecodeError where a piece is damaged
            self._pieces = [self.model.id_to_piece(index) for index in range(len(self.model))]
        except (OSError, RuntimeError, UnicodeDecodeError) as error:
            pass_on_lack_of_memory(error)
            raise DataError(
                f"{model}: not a readable subword model ({first_line(error)})"
            ) from None
        check_content(model, "`nmt prepare` writes it, and each run has a copy")

    def split_all(self, texts: Sequence[str]) -> list[list[str]]:
        normalized = [self.normalize(text) for text in texts]
        # One by one: for a list, sentencepiece would start a thread.
        sentences = [self.model.encode(text, out_type=int) for text in normalized]
        unknown = self.model.unk_id()
        return [
            self._with_characters(text, ids)
            if unknown in ids
            else [self._pieces[index] for index in ids]
            for text, ids in zip(normalized, sentences, strict=True)
        ]

    def _with_characters(self, text: str, ids: Sequence[int]) -> list[str]:
        """The pieces of a text, where sentencepiece joins neighboring unseen characters to one."""
        tokens: list[str] = []
        for piece, index in zip(self.model.encode(text, out_type=str), ids, strict=True):
            tokens += piece if index == self.model.unk_id() else [piece]
        return tokens


class CharacterTokenizer(Tokenizer):
    """Every character is a token: "a b" -> ["a", "▁", "b"]."""

    def __init__(self, config: TokenizerConfig, language: str, _model: Path) -> None:
        super().__init__(config, f"lang:{language}")

    def split_all(self, texts: Sequence[str]) -> list[list[str]]:
        return [list(self.normalize(text).replace(" ", SPACE)) for text in texts]


def model_path(folder: Path, side: Side) -> Path:
    """The path of a subword model in a prepared folder or a run."""
    return folder / f"{side}.spm.model"


def load_tokenizer(config: TokenizerConfig, language: str, side: Side, folder: Path) -> Tokenizer:
    """The tokenizer of one side; `folder` holds the learned models, if it needs any.

    Raises:
        DataError: the subword model is missing or damaged, or spaCy lacks a package for `language`.
    """
    tokenizer: Tokenizer = TOKENIZERS[config.kind].load()(
        config, language, model_path(folder, side)
    )
    tokenizer.language = language
    return tokenizer


def _train(texts: Iterable[str], config: TokenizerConfig, size: int) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type=config.kind,
        vocab_size=size,
        hard_vocab_limit=config.kind != "unigram",
        normalization_rule_name="identity",
        character_coverage=1.0,
        byte_fallback=False,
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        num_threads=1,
        max_sentence_length=1 << 20,
        minloglevel=4,
    )
    return model.getvalue()
