"""The table of names: what the configuration can choose, and the class or function of each choice.

To add one, write the class or function and its row here; in an extra, put the row into
`Extra(rows=...)`, under the name of the table in lower case. The schema takes its choices from
these tables, the rules ask the traits, and the builders load the row. No heavy import is here.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Literal

from nmt.errors import DataError
from nmt.plugins import Part, extras

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
TrainingPrecision = Literal["auto", "float32", "bfloat16"]
PointerName = Literal["best", "last"]


def _table(name: str, rows: Mapping[str, Part]) -> dict[str, Part]:
    """The rows of the core, and those of extras. A row of both has the traits of both."""
    table = dict(rows)
    for extra in extras().values():
        for row, part in extra.rows.get(name, {}).items():
            own = table.pop(row, Part())
            table[row] = Part(own.place or part.place, **own.traits | part.traits)
    return table


def having(table: Mapping[str, Part], trait: str) -> list[str]:
    """The names of the rows that have a trait."""
    return [name for name, part in table.items() if part.trait(trait)]


def format_of(name: str) -> str | None:
    """The format of a document, by the suffix of its name."""
    return SUFFIXES.get(PurePath(name).suffix.lower())


def choices(names: Iterable[str]) -> str:
    """Names in words: "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


# Traits of a score. sized: has a hidden size. scalable: can be divided by the square root of the
# query size. equal_sizes: queries and values must have the same size.
SCORES = _table(
    "scores",
    {
        "dot": Part("nmt.model.attention:DotScore", scalable=True, equal_sizes=True),
        "general": Part("nmt.model.attention:GeneralScore", scalable=True),
        "concat": Part("nmt.model.attention:ConcatScore", sized=True),
        "additive": Part("nmt.model.attention:AdditiveScore", sized=True),
        "concat_shared": Part(
            "nmt.model.attention:ConcatSharedScore", sized=True, equal_sizes=True
        ),
        "linear": Part("nmt.model.attention:LinearScore"),
        "none": Part("nmt.model.attention:NoAttention", absent=True),
    },
)

# window: attends to a window of the source. sized: needs a score with a hidden size.
ATTENTIONS = _table(
    "attentions",
    {
        "global": Part("nmt.model.attention:GlobalAttention"),
        "local_m": Part("nmt.model.attention:LocalMonotonic", window=True),
        "local_p": Part("nmt.model.attention:LocalPredictive", window=True),
        "coverage": Part("nmt.model.attention:Coverage", sized=True),
    },
)

# cell_state: its state is a pair, with a cell state beside the hidden state.
CELLS = _table(
    "cells",
    {
        "lstm": Part("nmt.model.recurrent:LSTM", cell_state=True),
        "gru": Part("nmt.model.recurrent:GRU"),
        "elman": Part("nmt.model.recurrent:Elman"),
    },
)

# fixed_size: the other sizes determine its own.
READOUTS = _table(
    "readouts",
    {
        "attentional": Part("nmt.model.decoder:AttentionalReadout"),
        "concat": Part("nmt.model.decoder:ConcatReadout", fixed_size=True),
        "state": Part("nmt.model.decoder:StateReadout", fixed_size=True),
        "deep": Part("nmt.model.decoder:DeepReadout"),
        "maxout": Part("nmt.model.decoder:MaxoutReadout"),
    },
)

# readouts: those that fit; all if it has no such trait. least_layers and most_layers: with the
# reason. feeds: the readout whose vector can be fed back into the next step.
DECODERS = _table(
    "decoders",
    {
        "luong": Part(
            "nmt.model.decoder:LuongDecoder",
            readouts=("attentional", "concat"),
            feeds="attentional",
        ),
        "bahdanau": Part("nmt.model.decoder:BahdanauDecoder", readouts=("state", "deep", "maxout")),
        "conditional": Part(
            "nmt.model.decoder:ConditionalDecoder",
            readouts=("state", "deep", "maxout"),
            most_layers=1,
            layers_text="conditional makes two recurrent steps with one state; set layers to 1, or "
            "use gnmt",
        ),
        "gnmt": Part(
            "nmt.model.decoder:GnmtDecoder",
            least_layers=2,
            layers_text="gnmt attends between the first layer and those above it; set layers to 2 "
            "or more, or use luong",
        ),
    },
)

# copies: takes the encoder's states as they are. backward: needs a bidirectional encoder.
BRIDGES = _table(
    "bridges",
    {
        "copy": Part("nmt.model.encoder:CopyBridge", copies=True),
        "dense": Part("nmt.model.encoder:DenseBridge"),
        "backward": Part("nmt.model.encoder:BackwardBridge", backward=True),
        "zero": Part("nmt.model.encoder:ZeroBridge"),
    },
)

# text: how the schema describes it. whole: tokens are whole words. learned: from the training
# data, with `tokenizer.size`.
TOKENIZERS = _table(
    "tokenizers",
    {
        "words": Part("nmt.text.tokenizers:WordTokenizer", text="words (spaCy)", whole=True),
        "bpe": Part(
            "nmt.text.tokenizers:SubwordTokenizer", text="bpe (SentencePiece)", learned=True
        ),
        "unigram": Part(
            "nmt.text.tokenizers:SubwordTokenizer", text="unigram (SentencePiece)", learned=True
        ),
        "characters": Part("nmt.text.tokenizers:CharacterTokenizer", text="characters"),
    },
)

# The formats of files. Those of pairs have a place, which opens them, and these traits:
# text: what a line or record is. files: reads `files`, one per language, instead of `path`.
# columns: "number" (from 1, or a name in the header), "name" (of a field) or "none".
# needs_columns: they must be given. english_first: the columns of English and of the other language
# if none are given. delimiters: those to try; by default a tab.
# records: `records(path)` yields the texts of each record by name. folder: `path` is a folder, and
# this file in it identifies its content. begins: a regular expression for the first characters.
# Those of documents, whose texts are translated:
# texts: `find(text)` yields the texts of a file. opens: `open(data, name, format, fill_all=...,
# languages=...)` gives the document. suffixes: of names of files. targets: the files have both
# languages. declares: a file says in which encoding it is. labels: `labels(text, languages)` yields
# what a file says of its own language. encoding: of files that are not UTF-8. escapes: how a
# character that the encoding lacks is written, as `str.encode` names it.
FORMATS = _table(
    "formats",
    {
        "manythings": Part(
            "nmt.data.formats:open_table", text="manythings (English first)", english_first=(1, 2)
        ),
        "tatoeba": Part(
            "nmt.data.formats:open_table", text="tatoeba (id, text, id, text)", english_first=(2, 4)
        ),
        "tsv": Part("nmt.data.formats:open_table", text="tsv", needs_columns=True),
        "csv": Part(
            "nmt.data.formats:open_table",
            text="csv",
            needs_columns=True,
            delimiters=",;|\t",
        ),
        "lines": Part("nmt.data.formats:open_lines", text="lines (two files)", files=True),
    },
)

PAIR_FORMATS = {name: part for name, part in FORMATS.items() if part.place}
DOCUMENT_FORMATS = having(FORMATS, "texts")
SUFFIXES = {
    suffix: name for name in DOCUMENT_FORMATS for suffix in FORMATS[name].trait("suffixes") or ()
}
# Formats that nmt does not read, by suffix: what they are, and what to do.
UNREAD = {
    suffix: (what, advice)
    for what, advice, suffixes in (
        (
            "a document",
            "save it as .docx or .html",
            ".azw3 .doc .docm .dotx .eml .epub .fodt .idml .key .mif .mobi .msg .odp .odt .pages "
            ".pdf .potx .ppsx .ppt .pptx .rtf .wpd .xps",
        ),
        (
            "a table",
            "save its texts as .txt, one in each line",
            ".csv .jsonl .ndjson .numbers .ods .psv .tsv .xls .xlsm .xlsx",
        ),
        (
            "subtitles",
            "convert it to .srt or .vtt",
            ".ass .dfxp .itt .lrc .sami .sbv .scc .smi .ssa .stl .sub .ttml",
        ),
        (
            "an export of a CAT tool",
            "export it as .xliff",
            ".mqxliff .mxliff .sdlxliff .ttx .txlf .txml .xlz",
        ),
        ("a memory or a list of terms", "`nmt adapt --with` learns from a .tmx", ".tbx .tmx"),
        (
            "markup",
            "convert it to .md or .html",
            ".adoc .asciidoc .bib .dbk .dita .ditamap .docbook .fb2 .ipynb .latex .man .mdx "
            ".mediawiki .opml .org .pod .qmd .rmd .rss .rst .svg .tex .texi .textile .typ .wiki",
        ),
        (
            "a template",
            "rename one of HTML to .html",
            ".aspx .cshtml .ejs .erb .haml .hbs .j2 .jinja .jsp .liquid .mustache .njk .phtml .pug "
            ".shtml .svelte .twig .vue .xht",
        ),
        ("a compiled catalog", "translate the file that it was made from", ".gmo .mo .qm"),
        ("a file of messages", "rename it to .json", ".arb"),
        (
            "a file of messages",
            "convert it to .po, .xliff or .json",
            ".cfg .dtd .ftl .glade .ics .ini .isl .js .json5 .jsonc .jsx .lang .mjs .nsh .php "
            ".plist .rc .resw .resx .storyboard .strings .stringsdict .toml .ts .tsx .ui .wxl "
            ".xaml .xcstrings .xib .yaml .yml",
        ),
    )
    for suffix in suffixes.split()
}


def refuse_unread(name: str) -> None:
    """Raises: DataError if nmt does not read the format of a file, by the suffix of its name."""
    if found := UNREAD.get(PurePath(name).suffix.lower()):
        raise DataError(f"{name}: is {found[0]} in a format that nmt does not read; {found[1]}")


# Further terms of the loss, in the order in which they are added. The key of training with the
# same name is the weight of a term.
LOSS_TERMS = _table("loss_terms", {})

# The scores of a validation: `metric(outputs, references, lowercase)`, one reference for each
# output. lower_is_better: the best checkpoint has the lowest value. title: in tables and pictures.
# by_language: the target language is a fourth argument.
METRICS = _table(
    "metrics",
    {
        "bleu": Part("nmt.evaluation.scores:bleu", title="BLEU", by_language=True),
        "chrf": Part("nmt.evaluation.scores:chrf", title="chrF"),
    },
)

# How decoding finds its translations; a row has no place: search knows its own two ways, and an
# extra ranks what beam search finds with its hook `rank`. text: how the schema describes it.
# tempered: the method uses the temperature as well, as sampling does.
METHODS = _table(
    "methods",
    {
        "beam": Part(text="beam (beam search)"),
        "sampling": Part(text="sampling (random)"),
    },
)

# What finds wrong pairs among all pairs of `nmt prepare`: `find(job, sources, held_out)` returns
# which of the training pairs to drop, and figures, which the manifest has under the name of the
# row. Its traits are places, too. rule: `rule(src, tgt)` gives a number for each pair as its file
# has it, for `Pairs.origins`. summary: `rows(figures)` yields rows of the report.
FILTERS = _table("filters", {})

# Functions that show translations as HTML. notebook: of one. page: of many, with their numbers.
VIEWS = _table("views", {})
