"""Compare the page of `nmt export --web` with the run itself, token by token, and measure it.

    python scripts/check_web.py [RUN] [--split test] [--sentences 200] [--beam K]... [--weights
    float32]...

For each beam (default: 1 and 5) and each kind of weights (default: both) it exports the run to a
temporary folder, opens it in headless Chromium from a server on this machine, and translates the
same sentences of the split there and with nmt. It prints how many translations have the same
tokens, the largest difference of scores, the bytes of the folder and of its page (by gzip), the
seconds until the page is ready, and the median milliseconds for ten sentences of 6, 12 and 20
words. Lines of several sentences are left out: the page translates them one by one. The exit status
is 1 if a float32 translation differs.
"""

import argparse
import gzip
import shutil
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, sync_playwright

from nmt.data.corpus import read_sentences
from nmt.errors import NmtError
from nmt.extras.export.store import Weights
from nmt.extras.export.web_page import write_web
from nmt.run.folder import check_same_data, load_run_config
from nmt.run.load import find_run_and_checkpoint, load_translator
from nmt.texts.sentences import n_sentences

WEIGHTS: tuple[Weights, ...] = ("float32", "int8")
LENGTHS, N_TIMED = (6, 12, 20), 10  # words; sentences of each length
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TRANSLATE = """async (text) => {
    const start = performance.now();
    const body = { q: [text], run: runs[0].name };
    const { lines: [{ translations: [best] }] } = await request("/translate", body);
    return { ...best, milliseconds: performance.now() - start };
}"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Static files, without a line for each request."""

    def log_message(self, *_: Any) -> None:
        pass


def translate_in_page(
    browser: Browser, folder: Path, texts: list[str]
) -> tuple[float, list[dict[str, Any]]]:
    """The seconds until the page is ready, and its translations with their milliseconds."""
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.evaluate(TRANSLATE, "?")  # waits until the run is loaded
        seconds = time.perf_counter() - start
        results = [page.evaluate(TRANSLATE, text) for text in texts]
        page.close()
        server.shutdown()
    return seconds, results


def check(
    browser: Browser, run: Path, lines: list[str], n_texts: int, beam: int, kind: Weights
) -> bool:
    """Print a row. Returns whether all tokens are equal."""
    texts = lines[:n_texts]
    by_length = [[line for line in lines if len(line.split()) == n] for n in LENGTHS]
    timed = [line for group in by_length for line in group[:N_TIMED]]
    overrides = [f"decoding.beam={beam}"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "site")
        write_web([run], folder, kind, overrides)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        page_size = len(gzip.compress((folder / "index.html").read_bytes(), 9))
        seconds, found = translate_in_page(browser, folder, texts + timed)
    overrides.append("decoding.precision=float32")
    expected = load_translator(run, device="cpu", overrides=overrides).translate(texts)
    pairs = [*zip(found, expected, strict=False)]
    n_same = sum(each["tokens"] == [*best.tokens] for each, best in pairs)
    differences = [
        abs(each["score"] - best.score) for each, best in pairs if each["tokens"] == [*best.tokens]
    ]
    times = dict[int, list[float]]()
    for line, each in zip(timed, found[len(texts) :], strict=True):
        times.setdefault(len(line.split()), []).append(each["milliseconds"])
    shown = ", ".join(f"{n} words {median(ms):.0f} ms" for n, ms in times.items())
    print(
        f"beam {beam}, {kind}: {n_same} of {len(texts)} equal, scores within "
        f"{max(differences, default=0):.1e}; {size / 1e6:.1f} MB, page {page_size / 1e3:.1f} kB by "
        f"gzip; ready after {seconds:.2f} s; {shown}",
        flush=True,
    )
    return bool(n_same == len(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--split", default="test", choices=("dev", "test"))
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--beam", type=int, action="append")
    parser.add_argument("--weights", choices=WEIGHTS, action="append")
    options = parser.parse_args()
    is_same = True
    try:
        run, _ = find_run_and_checkpoint(options.run)
        prepared = load_run_config(run).prepared_folder
        check_same_data(run, prepared)
        lines = read_sentences(prepared, options.split, "src")
        lines = [line for line in lines if n_sentences(line) == 1]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for beam in options.beam or (1, 5):
                for kind in options.weights or WEIGHTS:
                    is_equal = check(browser, run, lines, options.sentences, beam, kind)
                    is_same &= is_equal or kind != "float32"
    except NmtError as error:
        sys.exit(f"check_web.py: {error}")
    if not is_same:
        sys.exit("check_web.py: translations differ")


if __name__ == "__main__":
    main()
