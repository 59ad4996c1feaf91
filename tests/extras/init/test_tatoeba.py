"""`nmt init --direction` without data: the pairs are downloaded, here from a server on this machine
in place of both sites.
"""

import bz2
import io
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nmt.commands import prepare
from nmt.config.load import load_config
from nmt.data.corpus import read_sentences
from nmt.extras.init import tatoeba
from tests import toy
from tests.conftest import Run

PAIRS = toy.sentence_pairs()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def sentences(language: str, texts: list[str], first: int) -> bytes:
    lines = (f"{number}\t{language}\t{text}\n" for number, text in enumerate(texts, first))
    return bz2.compress(
        "".join([*lines, f"9999999\t{language}\tNobody translates this.\n"]).encode()
    )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of both sites."""
    folder = tmp_path / "site"
    for name in ("fra", "deu"):
        (folder / name).mkdir(parents=True)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("_about.txt", "About.")
        rows = (f"{src}\t{tgt}\tCC-BY 2.0 (France)\n" for src, tgt in PAIRS)
        archive.writestr("fra.txt", "".join(rows))
    (folder / "fra-eng.zip").write_bytes(packed.getvalue())
    src, tgt = (list(texts) for texts in zip(*PAIRS, strict=True))
    (folder / "fra/fra_sentences.tsv.bz2").write_bytes(sentences("fra", src, 1))
    (folder / "deu/deu_sentences.tsv.bz2").write_bytes(sentences("deu", tgt, 5001))
    links = "".join(f"{1 + i}\t{5001 + i}\n" for i in range(len(PAIRS)))
    (folder / "fra/fra-deu_links.tsv.bz2").write_bytes(bz2.compress(f"{links}7\t8\n".encode()))
    monkeypatch.setattr("pooch.utils.os_cache", lambda name: tmp_path / name)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(tatoeba, "WITH_ENGLISH", address + "/{}-eng.zip")
        monkeypatch.setattr(tatoeba, "EXPORTS", address)
        monkeypatch.chdir(tmp_path)
        yield folder
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("direction", "is_turned", "dropped"),
    [("en-fr", False, {}), ("fr-en", True, {}), ("fr-de", False, {"empty target": 1})],
)
def test_the_pairs_are_downloaded(
    nmt: Run, site: Path, direction: str, is_turned: bool, dropped: dict[str, int]
) -> None:
    out = nmt.prints("init", "mine", "--direction", direction)
    assert out.startswith("data        http://127.0.0.1:")
    assert f"\ndirection   {direction}\n" in out
    small = ["data.workers=1", "data.split.dev=20", "data.split.test=20", "tokenizer.size=200"]
    manifest = prepare.run(load_config(Path("mine/mine.yaml"), small), Path("data"), progress=False)
    found = manifest["counts"]["dropped"]
    assert {reason: n for reason, n in found.items() if n} == dropped
    sides = (read_sentences(Path("data"), "dev", side) for side in ("src", "tgt"))
    pairs = [*zip(*sides, strict=True)]
    assert len(pairs) == 20
    assert {pair[::-1] if is_turned else pair for pair in pairs} <= {*PAIRS}


def test_links_of_the_other_direction_are_turned(nmt: Run, site: Path) -> None:
    assert nmt("init", "mine", "--direction", "fr-de").status == 0
    turned = ["data.direction=de-fr", "data.workers=1", "tokenizer.size=200"]
    small = ["data.split.dev=20", "data.split.test=20"]
    config = load_config(Path("mine/mine.yaml"), turned + small)
    prepare.run(config, Path("data"), progress=False)
    assert {*read_sentences(Path("data"), "dev", "src")} <= {tgt for _, tgt in PAIRS}


@pytest.mark.parametrize(
    ("direction", "kind", "size", "dev"),
    [("en-ru", "bpe", 5000, 2000), ("ja-en", "unigram", 5000, 2000), ("en-hi", "bpe", 1000, 200)],
)
def test_the_model_fits_what_a_language_has(
    nmt: Run, site: Path, direction: str, kind: str, size: int, dev: int
) -> None:
    assert nmt("init", "mine", "--direction", direction).status == 0
    config = load_config(Path("mine/mine.yaml"))
    assert (config.tokenizer.kind, config.tokenizer.size) == (kind, size)
    assert config.data.split.dev == dev


@pytest.mark.parametrize(
    ("direction", "text"),
    [
        ("en-jp", ": tatoeba.org's pairs of 'jp' are not known; perhaps ja Japanese"),
        ("grk-en", ": tatoeba.org's pairs of 'grk' are not known; perhaps el Greek"),
        ("en-xx", ": tatoeba.org's pairs of 'xx' are not known; perhaps af, am, ar"),
        ("nb-no", " nb-no: both are nob on tatoeba.org; name pairs of your own with --data"),
    ],
)
def test_an_unknown_language(nmt: Run, site: Path, direction: str, text: str) -> None:
    nmt.refuses(f"nmt: --direction{text}", "init", "mine", "--direction", direction)
    assert not Path("mine").exists()


def test_each_language_has_one_code_on_both_sites() -> None:
    codes = tatoeba.site_codes()
    assert (codes["de"], codes["zh"], codes["lv"], codes["fa"]) == ("deu", "cmn", "lvs", "pes")
    assert {*tatoeba.MANY.split(), *tatoeba.FEW.split()} <= codes.keys()


def test_files_of_links(nmt: Run, site: Path) -> None:
    assert nmt("init", "mine", "--direction", "fr-de").status == 0
    path = Path("mine/mine.yaml")
    one = f"data.source.path={site}/fra/fra-deu_links.tsv.bz2"
    text = "needs three files: the ids of column 1 and 2, the sentences of column 1, and those of"
    nmt.refuses(text, "prepare", "-c", path, "--set", one)
    several = "one hash cannot check several files; remove sha256"
    nmt.refuses(several, "prepare", "-c", path, "--set", "data.source.sha256=ab")
