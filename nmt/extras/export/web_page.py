"""Writes runs as a page that translates in any browser, offline: static files, or one HTML file.

The page is that of `nmt serve`, with a worker in place of the server. Each run has two parts:
model.json with its settings, vocabularies, tokenizers and graphs, and weights.bin; both compressed
by gzip. In a single HTML file they stand inside the page, in base64.
"""

import base64
import gzip
import json
import re
import sys
from collections.abc import Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width
from urllib.parse import quote

import numpy as np

from nmt.config.schema import Config
from nmt.decoding.search import EXTRA_TOKENS
from nmt.decoding.torch_model import graphs_of
from nmt.decoding.translation import UNKNOWN
from nmt.decoding.translator import WordlessLines
from nmt.errors import ConfigError, DataError
from nmt.extras.export.program import to_program
from nmt.extras.export.store import Store, Weights
from nmt.extras.export.tokenizers import (
    sentence_rules,
    to_javascript,
    tokenizer_data,
    warning_rules,
)
from nmt.extras.page.files import FOLDER, linked, read
from nmt.files import new_folder, write_text
from nmt.model.lexicon import BASE, LEXICON, MAX_CHARACTERS, Lexicon
from nmt.run.folder import load_run_config, load_vocabularies
from nmt.run.load import opened, unchanged
from nmt.run.weights import load_model
from nmt.text import tokenizers
from nmt.text.tokenizers import SIDES, load_tokenizer
from nmt.text.vocabulary import EOS, PAD, SOS, SPECIALS, UNK
from nmt.texts import differences
from nmt.texts.patterns import PATTERNS
from nmt.texts.sentences import writes_spaces

# What search in the page reads of `decoding`, and what it lacks: key -> its only value.
DECODING_KEYS = (
    "beam",
    "length_penalty",
    "min_length_ratio",
    "max_length_ratio",
    "forbid_unknown",
    "max_source_tokens",
    "replace_unknown",
)
LACKING = {
    "method": "beam",
    "neighbors.pairs": 0,
    "rerank.run": None,
}
UNUSED = ("best_ids", "best")  # outputs of the graphs: the page looks for them itself
# The scripts of the worker, which takes the place of the server.
WORKER = (
    "kernel",
    "operators",
    "lexicon",
    "tokenizer",
    "sentences",
    "warnings",
    "items",
    "search",
    "answers",
    "worker",
)
# What they share with nmt, by the names that it has there: values; and patterns, with their use.
SHARED = {
    "PAD": PAD,
    "UNK": UNK,
    "SOS": SOS,
    "EOS": EOS,
    "SPECIALS": SPECIALS,
    "UNKNOWN": UNKNOWN,
    "EXTRA_TOKENS": EXTRA_TOKENS,
    "JOINER": tokenizers.JOINER,
    "SPACE": tokenizers.SPACE,
    "MAX_WORD": differences.MAX_WORD,
    "MAX_CHARACTERS": MAX_CHARACTERS,
}
SHARED_PATTERNS = (
    (tokenizers, "_INVISIBLE", "finditer"),
    (differences, "_BELOW", "search"),
    (differences, "_BRANCH", "finditer"),
    (differences, "_DIGITS", "finditer"),
    (differences, "_FORMS", "search"),
    (differences, "_HALF_DAY", "search"),
    (differences, "_MYRIADS", "finditer"),
    (differences, "_NEGATIVE", "finditer"),
    (differences, "_NUMBER", "finditer"),
    (differences, "_ORDER", "finditer"),
    (differences, "_SEPARATOR", "finditer"),
    (differences, "_UNNUMBERED", "fullmatch"),
    (differences, "_WITH_KEY", "fullmatch"),
)
# Nothing is loaded from elsewhere. `data:` are the runs inside the page, `blob:` is the worker.
POLICY = (
    "default-src 'none'; script-src {hashes} 'wasm-unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self' data:; worker-src blob:; base-uri 'none'; form-action 'none'"
)


def write_web(
    paths: Sequence[Path | None], output: Path, weights: Weights, overrides: Sequence[str]
) -> None:
    """Write the best checkpoints of runs, side by side.

    Args:
        paths: of runs or bundles; None is the newest run.
        output: the new folder; or the new file, if its name ends with .html or .htm.
        overrides: `decoding.key=value`.

    Raises:
        CheckpointError: a run cannot be read, or was changed meanwhile.
        ConfigError: an override is invalid, or a run cannot be exported for browsers.
        DataError: a file of a run is missing or damaged, or `output` exists.
    """
    if output.exists():
        raise DataError(f"{output}: exists; delete it, or choose another name after --web")
    is_file = output.suffix.lower() in (".html", ".htm")
    runs: dict[str, dict[str, Any]] = {}
    contents: dict[str, bytes] = {}  # of files in the folder
    for path in paths:
        base, model, numbers = _named_model(path, weights, overrides)
        names = (base, *(f"{base}-{n}" for n in range(2, len(runs) + 2)))
        name = next(each for each in names if each not in runs)
        runs[name] = {
            "name": name,
            "source": model["languages"][0],
            "target": model["languages"][1],
            "translations": model["decoding"]["beam"],
        }
        text = json.dumps(model, ensure_ascii=False, separators=(",", ":"))
        for part, content in (("model", text.encode()), ("weights", numbers)):
            compressed = gzip.compress(content, mtime=0)
            if is_file:
                runs[name][part] = f"data:;base64,{base64.b64encode(compressed).decode()}"
            else:
                contents[f"runs/{name}/{part}.gz"] = compressed
                runs[name][part] = quote(f"runs/{name}/{part}.gz")
    output.resolve().parent.mkdir(parents=True, exist_ok=True)
    page = _page([*runs.values()])
    if is_file:
        write_text(output, page)
        return
    with new_folder(output) as folder:
        write_text(folder / "index.html", page)
        for file, content in contents.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)


def _named_model(
    path: Path | None, weights: Weights, overrides: Sequence[str]
) -> tuple[str, dict[str, Any], bytes]:
    """The name of a run, and what `_model` gives; its errors say which run it is."""
    with opened(path) as (run, checkpoint), unchanged([(run, checkpoint)]):
        place = (path or run).resolve()
        try:
            model, numbers = _model(run, checkpoint, weights, overrides)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from None
    return place.stem if place.is_file() else place.name, model, numbers


def _model(
    run: Path, checkpoint: Path, weights: Weights, overrides: Sequence[str]
) -> tuple[dict[str, Any], bytes]:
    """Settings, vocabularies, tokenizers and programs; and the bytes of their tensors."""
    config = load_run_config(run, overrides)
    _check_search(config)
    languages = config.data.src_language, config.data.tgt_language
    vocabularies, store = load_vocabularies(run), Store(weights)
    trained = load_model(run, checkpoint).eval()
    for part in trained.modules():
        if not type(part).__module__.startswith(("nmt.", "torch.")):
            raise ConfigError(f"{type(part).__name__}: a part of your own cannot run in a page")
    files = graphs_of(trained, "float32")
    if files is None:
        raise ConfigError("graphs cannot express its model; it needs torch")
    model: dict[str, Any] = {
        "languages": languages,
        "decoding": {key: getattr(config.decoding, key) for key in DECODING_KEYS},
        "copied": _copied_lines(WordlessLines(*vocabularies)),
        **{
            side: {
                "tokens": [*vocabulary],
                "counts": vocabulary.counts,
                "tokenizer": tokenizer_data(load_tokenizer(config.tokenizer, language, side, run)),
            }
            for side, language, vocabulary in zip(SIDES, languages, vocabularies, strict=True)
        },
        "sentences": sentence_rules(languages[0]),
        "warnings": warning_rules(),
        "items": [to_javascript(row.pattern.finditer) for row in PATTERNS if row.is_compared],
        "writes_spaces": writes_spaces(languages[1]),
        "wide": _wide_characters(),
        "encoder": to_program(files["encoder.onnx"], store),
        "step": to_program(files["step.onnx"], store),
        "output": to_program(files["output.onnx"], store, UNUSED),
    }
    if LEXICON in files:
        model["lexicon"] = lexicon_tensors(Lexicon.of_bytes(files[LEXICON]), store)
    return model | {"size": len(store.data)}, bytes(store.data)


def _check_search(config: Config) -> None:
    """Raises: ConfigError if nmt finds translations in a way that the page lacks."""
    for key, only in LACKING.items():
        value: Any = config.decoding
        for name in key.split("."):
            value = getattr(value, name, only)  # a key of an extra that is not there
        if value != only:
            setting = f"decoding.{key}={'null' if only is None else only}"
            raise ConfigError(f"decoding.{key}: {value} cannot run in a page; add --set {setting}")


def lexicon_tensors(lexicon: Lexicon, store: Store) -> dict[str, Any]:
    """The tables of lexicon.js."""
    types: dict[str, Any] = dict.fromkeys(("lengths", "begins", "ends"), np.uint8)
    types |= {"ids": np.uint16 if lexicon.ids.max() < 1 << 16 else np.int32}
    return {
        name: store.add(array.astype(types.get(name, array.dtype)), name == "probabilities")
        for name, array in vars(lexicon).items()
    }


def _wide_characters() -> str:
    """A class of JavaScript's regular expressions: the characters of scripts that write no spaces,
    as `group_words` of nmt/extras/serve/answers.py knows them.
    """
    codes = groupby(range(sys.maxunicode + 1), lambda code: east_asian_width(chr(code)) in "WF")
    ranges = ([*run] for is_wide, run in codes if is_wide)
    return "[" + "".join(f"\\u{{{run[0]:x}}}-\\u{{{run[-1]:x}}}" for run in ranges) + "]"


def _copied_lines(wordless: WordlessLines) -> str:
    """A regular expression of JavaScript for the lines that are their own translation."""
    signs = "".join(f"\\u{{{ord(sign):x}}}" for sign in sorted(wordless.only_source))
    return rf"^(?!.*\p{{L}})(?:[\0-\x7f]*|[^{signs}]*)$" if wordless.are_copied else "(?!)"


def _page(runs: Sequence[dict[str, Any]]) -> str:
    """index.html of `nmt serve` with its styles and scripts inside, the worker, and the runs."""
    html, hashes = read("index.html").replace("request_server.js", "request_worker.js"), list[str]()
    for name in linked(html):
        text = f"\n{_compact(read(name))}"
        if name.endswith(".css"):
            html = html.replace(
                f'<link rel="stylesheet" href="./{name}">', f"<style>{text}</style>"
            )
        else:
            html = html.replace(f'<script src="./{name}">', f"<script>{text}")
            digest = base64.b64encode(sha256(text.encode()).digest()).decode()
            hashes.append(f"'sha256-{digest}'")
    policy = POLICY.format(hashes=" ".join(hashes))
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    listed = json.dumps(runs, ensure_ascii=False).replace("<", "\\u003c")
    worker = "\n".join([constants(), *(_compact(read(f"{name}.js")) for name in WORKER)])
    data = (
        f'<script type="application/json" id="runs">{listed}</script>\n'
        f'<script type="text/plain" id="worker">\n{worker}</script>\n'
    )
    html = html.replace("<title>", f"{meta}<title>", 1)
    return html.replace("<script>", f"{data}<script>", 1)


def constants() -> str:
    """What the scripts of the worker use and do not define."""
    kernel = base64.b64encode((FOLDER / "kernel.wasm").read_bytes()).decode()
    lines = [f"const {name} = {json.dumps(value)};" for name, value in SHARED.items()]
    for module, name, method in SHARED_PATTERNS:
        pattern = to_javascript(getattr(vars(module)[name], method))
        lines.append(f"const {name} = new RegExp(...{json.dumps(pattern)});")
    return "\n".join([*lines, f"const BASE = {BASE}n;", f'const KERNEL = "{kernel}";', ""])


def _compact(text: str) -> str:
    """Without indentation and lines of comments, which no browser needs."""
    return re.sub(r"^\s*//.*\n|^\s+", "", text, flags=re.MULTILINE)
