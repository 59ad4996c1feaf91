"""Writes runs as a page that translates in any browser, offline: a folder of static files, or one HTML file.

The page is that of `nmt serve`, with a worker in place of the server. Each run has two files:
model.json.gz with its settings, vocabularies, tokenizers and graphs, and weights.bin.gz. In a
single HTML file they stand inside the page, in base64.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unicodedata import east_asian_width
from urllib.parse import quote

import onnx

from nmt.errors import DataError
from nmt.extras.export.graphs import export_graphs
from nmt.extras.export.program import Weights, to_program
from nmt.extras.export.settings import settings_of
from nmt.extras.export.tokenizers import tokenizer_data
from nmt.files import new_folder, replacing
from nmt.run.folder import load_run_config, load_vocabularies
from nmt.run.load import load_model, opened, unchanged
from nmt.text.tokenizers import SIDES, load_tokenizer

# The parts of the page, by package; a script that is not among them is that of the export.
PAGE = {
    "page.css": "nmt.extras.analysis",
    "page.js": "nmt.extras.analysis",
    "serve.css": "nmt.extras.serve",
    "serve.js": "nmt.extras.serve",
}
WORKER = ("runtime.js", "tokenizer.js", "warnings.js", "search.js", "answers.js", "worker.js")
# Nothing is loaded from elsewhere. `data:` are the runs inside the page, `blob:` is the worker.
POLICY = (
    "default-src 'none'; script-src {scripts} 'wasm-unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self' data:; worker-src blob:; base-uri 'none'; form-action 'none'"
)


def write_web(
    paths: Sequence[Path | None], output: Path, weights: Weights, overrides: Sequence[str]
) -> None:
    """Write the best checkpoints of the runs.

    Args:
        paths: of runs or bundles; None is the newest run.
        output: the new folder; or the new file, if its name ends with .html.
        overrides: `decoding.key=value`.

    Raises:
        CheckpointError: a run cannot be read, or was changed meanwhile.
        ConfigError: an override is invalid; or a run cannot be exported, or not for a browser.
        DataError: a file of a run is missing or damaged, or `output` exists.
    """
    if output.exists():
        raise DataError(f"{output}: exists; delete it, or choose another name after --web")
    runs: dict[str, dict[str, Any]] = {}
    contents: dict[str, bytes] = {}
    for path in paths:
        with opened(path) as (run, checkpoint), unchanged([(run, checkpoint)]):
            model, weights_bytes = _model(run, checkpoint, weights, overrides)
            place = (path or run).resolve()
        name = base = place.stem if place.is_file() else place.name
        while name in runs:
            name = f"{base}-{len(runs) + 1}"
        source, target = model["settings"]["direction"].split("-")
        beam = model["settings"]["decoding"]["beam"]
        runs[name] = {"name": name, "source": source, "target": target, "translations": beam}
        text = json.dumps(model, ensure_ascii=False, separators=(",", ":"))
        for part, content in (("model.json", text.encode()), ("weights.bin", weights_bytes)):
            contents[f"{name}/{part}.gz"] = gzip.compress(content, mtime=0)
    for path_in_page, content in contents.items():
        name, part = path_in_page.split("/")
        is_inside = output.suffix == ".html"
        address = f"data:;base64,{base64.b64encode(content).decode()}"
        runs[name][part] = address if is_inside else quote(path_in_page)
    page = _page([*runs.values()])
    if output.suffix == ".html":
        write_text(output, page)
        return
    with new_folder(output) as folder:
        write_text(folder / "index.html", page)
        for path_in_page, content in contents.items():
            (folder / path_in_page).parent.mkdir(exist_ok=True)
            (folder / path_in_page).write_bytes(content)


def _model(
    run: Path, checkpoint: Path, weights: Weights, overrides: Sequence[str]
) -> tuple[dict[str, Any], bytes]:
    """The contents of model.json and of weights.bin: of the encoder, then of the step."""
    config = load_run_config(run, overrides)
    settings, vocabularies = settings_of(run, config), load_vocabularies(run)
    languages = config.data.src_language, config.data.tgt_language
    tokenizers = [
        load_tokenizer(config.tokenizer, language, side, run)
        for side, language in zip(SIDES, languages, strict=True)
    ]
    with TemporaryDirectory() as temporary:
        graphs = [Path(temporary, name) for name in ("encoder.onnx", "step.onnx")]
        export_graphs(load_model(run, checkpoint).eval(), *graphs)
        (encoder, first), (step, second) = (
            to_program(onnx.load(graph), weights) for graph in graphs
        )
    model = {
        "settings": settings,
        "vocabularies": {side: [*each] for side, each in zip(SIDES, vocabularies, strict=True)},
        "tokenizers": {side: tokenizer_data(each) for side, each in zip(SIDES, tokenizers, strict=True)},
        "wide": _wide_characters(),
        "encoder": encoder,
        "step": step,
        "encoder_bytes": len(first),
    }
    return model, first + second


def _wide_characters() -> str:
    """A class of characters for JavaScript: those of scripts that write no spaces, see
    `group_words` of nmt/extras/serve/answers.py.
    """
    codes = range(sys.maxunicode + 1)
    runs = groupby(codes, lambda code: east_asian_width(chr(code)) in "WF")
    ranges = ([*run] for is_wide, run in runs if is_wide)
    return "".join(f"\\u{{{each[0]:x}}}-\\u{{{each[-1]:x}}}" for each in ranges)


def _page(runs: Sequence[dict[str, Any]]) -> str:
    """index.html with its styles and scripts inside, the worker, and the list of the runs."""
    html = _read("nmt.extras.serve", "page/index.html")
    html = re.sub(
        r'<link rel="stylesheet" href="\./(.+?)">',
        lambda link: f"<style>\n{_read(*PAGE[link[1]])}</style>",
        html,
    )
    html = re.sub(
        r'<script src="\./(.+?)"></script>',
        lambda link: f"<script>\n{_read(*PAGE[link[1]])}</script>",
        html,
    )
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digests = (base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    policy = POLICY.format(scripts=" ".join(f"'sha256-{digest}'" for digest in digests))
    worker = "\n".join(_read("nmt.extras.export", f"web/{name}") for name in WORKER)
    data = json.dumps(runs, ensure_ascii=False).replace("<", "\\u003c")
    head, body = html.split("<meta charset", 1)
    html = f'{head}<meta http-equiv="Content-Security-Policy" content="{policy}">\n<meta charset{body}'
    parts = {"runs": ("application/json", data), "worker": ("text/plain", worker)}
    ...
