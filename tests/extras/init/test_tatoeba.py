"""`nmt init --direction` without data: the pairs are downloaded, here from a folder in place of
both sites.
"""

import bz2
from collections.abc import Iterable
from pathlib import Path

import pytest

from nmt.commands import prepare
from nmt.config.load import load_config
from nmt.data.corpus import read_sentences
from nmt.extras.init import tatoeba
from tests import toy
from tests.conftest import Run
from tests.data.packing import archive

PAIRS = toy.sentence_pairs()
SITES = ("https://www.manythings.org/anki", "https://downloads.tatoeba.org/exports/per_language")


def sentences(language: str, texts: Iterable[str], first: int) -> bytes:
    lines = (f"{number}\t{language}\t{text}\n" for number, text in enumerate(texts, first))
    return bz2.compress(
        "".join([*lines, f"9999999\t{language}\tNobody translates this.\n"]).encode()
    )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Downloads from both sites give these files."""
    folder = tmp_path / "site"
    for name in ("fra", "deu"):
        (folder / name).mkdir(parents=True)
    rows = "".join(f"{src}\t{tgt}\tCC-BY 2.0 (France)\n" for src, tgt in PAIRS)
    archive(folder / "fra-eng.zip", {"_about.txt": b"About.", "fra.txt": rows.encode()})
    src, tgt = zip(*PAIRS, strict=True)
    (folder / "fra/fra_sentences.tsv.bz2").write_bytes(sentences("fra", src, 1))
    (folder / "deu/deu_sentences.tsv.bz2").write_bytes(sentences("deu", tgt, 5001))
    links = "".join(f"{1 + i}\t{5001 + i}\n" for i in range(len(PAIRS)))
    (folder / "fra/fra-deu_links.tsv.bz2").write_bytes(bz2.compress(f"{links}7\t8\n".encode()))
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*.*")]
    files = {f"{address}/{name}": folder / name for address in SITES for name in names}
    monkeypatch.setattr(prepare, "fetch", lambda url, is_hashed: files[url])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("direction", "prepared", "is_turned", "dropped"),
    [
        ("en-fr", "en-fr", False, {}),
        ("fr-en", "fr-en", True, {}),
        ("fr-de", "fr-de", False, {"empty target": 1}),
        ("fr-de", "de-fr", True, {"empty source": 1}),
    ],
)
def test_the_pairs_are_downloaded(
    nmt: Run, site: None, direction: str, prepared: str, is_turned: bool, dropped: dict[str, int]
) -> None:
    out = nmt.prints("init", "mine", "--direction", direction)
    assert out.startswith(f"data        {SITES['en' not in direction]}/fr")
    assert f"\ndirection   {direction}\n" in out
    small = ["data.workers=1", "data.split.dev=20", "data.split.test=20", "tokenizer.size=200"]
    config = load_config(Path("mine/mine.yaml"), [*small, f"data.direction={prepared}"])
    manifest = prepare.run(config, Path("data"), progress=False)
    found = manifest["counts"]["dropped"]
    assert {reason: n for reason, n in found.items() if n} == dropped
    sides = (read_sentences(Path("data"), "dev", side) for side in ("src", "tgt"))
    pairs = [*zip(*sides, strict=True)]
    assert len(pairs) == 20
    assert {pair[::-1] if is_turned else pair for pair in pairs} <= {*PAIRS}


@pytest.mark.parametrize(
    ("direction", "kind", "size", "dev"),
    [("en-ru", "bpe", 5000, 2000), ("ja-en", "unigram", 5000, 2000), ("en-hi", "bpe", 1000, 200)],
)
def test_the_model_fits_what_a_language_has(
    nmt: Run, site: None, direction: str, kind: str, size: int, dev: int
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
def test_an_unknown_language(nmt: Run, site: None, direction: str, text: str) -> None:
    nmt.refuses(f"nmt: --direction{text}", "init", "mine", "--direction", direction)
    assert not Path("mine").exists()


def test_each_language_has_one_code_on_both_sites() -> None:
    codes = tatoeba.site_codes()
    assert (codes["de"], codes["zh"], codes["lv"], codes["fa"]) == ("deu", "cmn", "lvs", "pes")
    assert {*tatoeba.MANY.split(), *tatoeba.FEW.split()} <= codes.keys()
