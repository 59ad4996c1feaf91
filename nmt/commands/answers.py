"""What `nmt translate` reads and prints: sentences, lines or a document; texts, n-best lists, word
alignments, JSON, scores, attention.

Heavy imports stand in the functions, so that a wrong option is refused at once.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from nmt.config.parts import DOCUMENT_FORMATS, FORMATS, VIEWS, choices, format_of, refuse_unread
from nmt.errors import ConfigError, DataError, FormatError, NmtError, TextError
from nmt.files import explain_read_errors, explain_write_errors, write_text
from nmt.lines import stream_lines

if TYPE_CHECKING:
    from nmt.decoding.forced import ScoredPair
    from nmt.decoding.translation import Translation
    from nmt.decoding.translator import Translator
    from nmt.text.tokenizers import Tokenizer

MAX_BYTES = 1 << 27  # of a document, which is read as a whole
LINES = "lines"
PAGE_SUFFIX = ".html"  # of a page with the attention of all sentences
ResultT = TypeVar("ResultT")
Answer = tuple[int, ResultT, list[str]]  # number of the sentence, from 1; result; its warnings


@dataclass(frozen=True)
class Shown:
    """What to print or draw of each translation: an option each."""

    n_best: int = 1
    prefix: str | None = None
    align: bool = False
    score: bool = False
    attention: Path | None = None
    as_json: bool = False

    @property
    def options(self) -> list[str]:
        """Those that are given; each needs a line for each sentence."""
        given = {
            "--json": self.as_json,
            "--n-best": self.n_best > 1,
            "--align": self.align,
            "--prefix": self.prefix is not None,
            "--score": self.score,
            "--attention": self.attention is not None,
        }
        return [name for name, is_given in given.items() if is_given]

    def check(
        self, format_name: str | None, fill: str, output: Path | None, others: Mapping[str, Any]
    ) -> None:
        """Refuse options that do not go together.

        Args:
            format_name: of a document; None for lines.
            fill, output: the options of these names.
            others: further problems, each with whether there is one.

        Raises:
            typer.BadParameter: there is a problem.
        """
        given = next(iter(self.options), None)
        searching = [name for name in self.options if name not in ("--score", "--json")]
        problems = {
            f"--score does not search; remove {', '.join(searching)}": self.score and searching,
            "--align prints one alignment per sentence; remove --n-best": (
                self.align and self.n_best > 1
            ),
            "--json contains the alignment already; remove --align": self.align and self.as_json,
            "--fill is for files with both languages (po, xliff)": (
                fill == "all" and (format_name is None or not FORMATS[format_name].trait("targets"))
            ),
            f"{given} needs lines of text, and this file is {format_name}; remove {given}, or add "
            f"--format {LINES}": format_name is not None and given,
            "docx is no text for a terminal; write into a file with -o": (
                format_name == "docx" and output is None and sys.stdout and sys.stdout.isatty()
            ),
            **others,
        }
        for text, is_wrong in problems.items():
            if is_wrong:
                raise typer.BadParameter(text)


@dataclass(frozen=True)
class InputTexts:
    """What to translate.

    Attributes:
        batches: lists of texts, in order.
        name: of the file or stream, for messages. unit: "line" or "sentence", for messages.
        is_keyboard: whether someone types the sentences and waits for each translation.
        numbers: of the lines of all texts, where they are not 1, 2, 3 ...
    """

    batches: Iterable[Sequence[Any]]
    name: str
    unit: str
    is_keyboard: bool = False
    numbers: Sequence[int] | None = None


def open_input(sentences: Sequence[str], file: Path | None) -> InputTexts:
    """The given sentences, the lines of `file`, or those of stdin (`-`, or neither sentences nor
    file).

    Raises:
        DataError: the file cannot be read, stdin is closed, or a sentence is not UTF-8.
    """
    if sentences:
        for number, sentence in enumerate(sentences, 1):
            if not sentence.isprintable() and any(
                "\ud800" <= character <= "\udfff" for character in sentence
            ):
                raise DataError(f"sentence {number}: not UTF-8")
        return InputTexts([sentences], "command line", "sentence")
    name, stream = _open(file, "give sentences or --file")
    return InputTexts(_read_lines(stream, name), name, "line", stream.isatty())


def _open(file: Path | None, advice: str) -> tuple[str, Any]:
    """The name of a file, and its bytes as a stream; stdin for `-`, and without a file. Raises:
    DataError.

    Args:
        advice: what to do if stdin is closed.
    """
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise DataError(f"stdin is closed; {advice}")
        return "stdin", sys.stdin.buffer
    with explain_read_errors(file):
        return str(file), file.open("rb")


def _read_lines(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    with explain_read_errors(Path(name)), stream:
        yield from stream_lines(stream, name)


def read_document(
    file: Path | None,
    format_name: str | None,
    languages: tuple[str, str] | None,
    *,
    is_named: bool,
    fill: str,
) -> Any:
    """The document of a file. None: the file is read line by line, such as plain text that cannot
    be read as a whole, whose lines are translated up to the fault.

    Args:
        format_name: None for lines. languages: of source and target; the document says
            that it is in the target language.
        is_named: whether the user named the format.

    Raises:
        DataError: the file cannot be read, or has another format.
    """
    if format_name is None:
        if not is_named and file is not None:
            refuse_unread(str(file))
        return None
    try:
        place, stream = _open(file, "give --file")
        with explain_read_errors(Path(place)), stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DataError(f"{place}: larger than {MAX_BYTES:,} bytes; divide it")
        open_file = FORMATS[format_name].load("opens")
        return open_file(content, place, format_name, fill_all=fill == "all", languages=languages)
    except FormatError as error:
        raise DataError(f"{error}; --format {LINES} translates it line by line") from None
    except DataError:
        if format_name == "txt" and not is_named:
            return None
        raise


def document_format(file: Path | None, name: str | None, shown: Shown) -> str | None:
    """The format of a document; None for lines. Plain text is both.

    Raises:
        typer.BadParameter: there is no format of this name.
    """
    if name not in (None, LINES, *DOCUMENT_FORMATS):
        raise typer.BadParameter(
            f"--format {name}: unknown; known are {', '.join([*DOCUMENT_FORMATS, LINES])}"
        )
    if name is not None:
        return None if name == LINES else name
    found = None if file is None else format_of(file.name)
    return None if found == "txt" and shown.options else found


def score_texts(translator: "Translator", texts: Sequence[str]) -> "list[ScoredPair]":
    """The scores of pairs: each text is a sentence, a tab, and its translation."""
    from nmt.decoding.forced import score_pairs

    pairs = []
    for index, text in enumerate(texts):
        sentence, *translations = text.split("\t")
        if len(translations) != 1:
            raise TextError(
                index,
                f"found {len(translations)} tabs; write the sentence, one tab, and its translation",
            )
        pairs.append((sentence, translations[0]))
    return score_pairs(translator, pairs)


def to_line(
    answer: "Answer[list[Translation]]", tokenizers: "tuple[Tokenizer, Tokenizer]", shown: Shown
) -> str:
    """The best translation or its word alignment; or the n best as Moses prints them: number,
    translation, score; or all about them as JSON.
    """
    from nmt.decoding.alignment import align, translation_to_dict

    number, translations, found = answer
    best = translations[0]
    if shown.align:
        _check_attention(best, "--align")
        return " ".join(  # as Pharaoh writes them
            f"{source}-{output}" for source, output in align(best, tokenizers)
        )
    if shown.as_json:
        hypotheses = [translation_to_dict(translation, tokenizers) for translation in translations]
        return json.dumps(
            {
                "source": best.source,
                "src_tokens": best.src_tokens,
                **hypotheses[0],
                "src_cut": best.src_cut,
                "warnings": found,
                **best.facts,
                **({"n_best": hypotheses} if shown.n_best > 1 else {}),
            },
            ensure_ascii=False,
        )
    if shown.n_best == 1:
        return best.text
    return "\n".join(
        f"{number - 1} ||| {translation.text} ||| {translation.score:.4f}"
        for translation in translations
    )


def score_lines(
    answers: "Iterable[Answer[ScoredPair]]", unit: str, *, as_json: bool
) -> Iterator[str]:
    """Log-probability, tokens and perplexity of each pair. The totals are the last line of JSON;
    without JSON they go to stderr.
    """
    from nmt.evaluation.scores import perplexity

    n_pairs, n_tokens, log_prob = 0, 0, 0.0
    for _, pair, found in answers:
        values = {**pair.to_dict(), "warnings": found}
        n_pairs += 1
        n_tokens += values["n_tokens"]
        log_prob += values["log_prob"]
        if as_json:
            yield json.dumps(values, ensure_ascii=False)
        else:
            yield f"{pair.log_prob:.4f}\t{values['n_tokens']}\t{pair.perplexity:.4f}"
    if not n_pairs:
        return
    total = perplexity(-log_prob / n_tokens)
    if as_json:
        yield json.dumps(
            {"pairs": n_pairs, "log_prob": log_prob, "n_tokens": n_tokens, "perplexity": total}
        )
    else:
        print(
            f"{n_pairs:,} {unit}{'s' if n_pairs > 1 else ''}: log-probability {log_prob:.4f}, "
            f"{n_tokens:,} tokens, perplexity {total:.4f}",
            file=sys.stderr,
        )


def draw_attention(
    answers: "Iterable[Answer[list[Translation]]]", path: Path
) -> "Iterator[Answer[list[Translation]]]":
    """Pass answers on, and draw the attention of the best translations: all on a page, or that of a
    single sentence as a picture.

    Raises:
        ConfigError: the model has no attention; or there is not exactly one sentence for a picture.
        DataError: the file cannot be written.
    """
    from nmt.report import heatmap

    is_page = path.suffix.lower() == PAGE_SUFFIX
    drawn: list[tuple[int, Translation]] = []
    if not is_page:
        answers = [*islice(answers, 2)]
        if len(answers) != 1 or not answers[0][1][0].src_tokens:
            raise ConfigError(
                f"--attention {path}: a picture shows one sentence; give exactly one, or name a "
                f"page ({PAGE_SUFFIX})"
            )
    for answer in answers:
        yield answer
        number, (best, *_), _ = answer
        _check_attention(best, "--attention")
        if best.src_tokens:
            drawn.append((number, best))
    if is_page:
        with explain_write_errors(path):
            write_text(path, VIEWS["page"].load()(drawn))
    else:
        [(_, best)] = drawn
        heatmap.draw(*best.attention_labels, best.attention, path)


def _check_attention(translation: "Translation", option: str) -> None:
    if translation.src_tokens and not translation.has_attention:
        raise ConfigError(f"{option}: this model has no attention (model.attention.score: none)")


def check_output_files(output: Path | None, attention: Path | None) -> None:
    """Check, before any work, that these files can be written.

    Raises:
        DataError: a folder is missing, or `output` is a folder.
        NmtError: `attention` has another suffix than those of pictures and pages.
    """
    from nmt.report.style import PICTURE_FORMATS

    if output is not None and output.is_dir():
        raise DataError(f"{output}: is a folder; name a file")
    if output is not None and not output.parent.is_dir():
        raise DataError(f"{output.parent}: no such folder")
    formats = [*PICTURE_FORMATS, *([PAGE_SUFFIX] if "page" in VIEWS else [])]
    if attention is not None and attention.suffix.lower() not in formats:
        raise NmtError(f"{attention}: cannot draw attention in this format; use {choices(formats)}")
    if attention is not None and not attention.parent.is_dir():
        raise DataError(f"{attention}: the folder {attention.parent} does not exist")
