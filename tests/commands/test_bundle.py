"""`nmt bundle`: one file that translates as its run does; and damaged files."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

import nmt as package
from nmt.decoding.lexicon import Entry, Lexicon
from tests import toy
from tests.conftest import Run

SENTENCES = ("The dog sees the man.", "The king loves the unseen river.")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = toy.train(tmp_path_factory.mktemp("bundle"))
    Lexicon({"dog": [Entry("Hund", 1.0, 7)]}).save(run / "lexicon.tsv")
    return run


@pytest.fixture
def bundle(nmt: Run, trained: Path, tmp_path: Path) -> Path:
    path = tmp_path / "toy.nmt"
    result = nmt("bundle", trained, "-o", path)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(f"{path}: {trained}, step-00000060, ")
    assert result.out.endswith(f'next: nmt translate --run {path} "..."\n')
    return path


def test_a_bundle_translates_as_its_run_does(nmt: Run, trained: Path, bundle: Path) -> None:
    expected = nmt("translate", "--run", trained, "--json", *SENTENCES).out
    assert nmt("translate", "--run", bundle, "--json", *SENTENCES).out == expected
    assert [each.text for each in package.load(bundle).translate(SENTENCES)] == [
        json.loads(line)["text"] for line in expected.splitlines()
    ]
    ensemble = nmt("translate", "--run", bundle, "--run", trained, *SENTENCES)
    assert (ensemble.status, ensemble.out.count("\n")) == (0, 2)


def test_it_holds_no_more_than_translating_needs_and_unpacks_to_a_run(
    nmt: Run, trained: Path, bundle: Path, tmp_path: Path
) -> None:
    names = set(zipfile.ZipFile(bundle).namelist())
    assert {"config.yaml", "manifest.json", "src.vocab.txt", "tgt.vocab.txt", "lexicon.tsv"} <= names
    assert "checkpoints/step-00000060/model.safetensors" in names
    assert not any("optimizer" in name or "journal" in name for name in names)
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "unpacked")
    expected = nmt("translate", "--run", trained, *SENTENCES).out
    assert nmt("translate", "--run", tmp_path / "unpacked", *SENTENCES).out == expected


def test_the_same_run_gives_the_same_bytes(nmt: Run, trained: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bundle.read_bytes()
    assert nmt("bundle", trained).status == 0
    assert trained.with_name("run.nmt").read_bytes() == content


def rewrite(bundle: Path, name: str, content: bytes) -> None:
    """Replace or add a member."""
    with zipfile.ZipFile(bundle) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(bundle, "w") as archive:
        for each, old in {**members, name: content}.items():
            archive.writestr(each, content if each == name else old)


def test_damaged_files(nmt: Run, bundle: Path) -> None:
    content = bundle.read_bytes()
    middle = len(content) // 2
    for damaged in (content[:middle], content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :], b"text"):
        bundle.write_bytes(damaged)
        result = nmt("translate", "--run", bundle, "Hello.")
        assert (result.status, result.out) == (1, "")
        assert f"nmt: {bundle}: no bundle, or damaged (" in result.err
        assert "name the folder of a run, or a file that `nmt bundle` wrote" in result.err


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("bundle.json", b'{"format": "nmt bundle", "format_version": 2}', "made by a newer nmt (format 2, this version reads 1)"),
        ("bundle.json", b'{"format": "other"}', "no bundle; name the folder of a run"),
        ("bundle.json", b"[", "no bundle; name the folder of a run"),
        ("../outside", b"", "no bundle; name the folder of a run"),
        ("src.vocab.txt", b"dog\n", "toy.nmt/src.vocab.txt, line 1: expected a token, a tab and its count"),
        (
            "checkpoints/step-00000060/model.safetensors",
            b"dog\n",
            "toy.nmt/checkpoints/step-00000060/model.safetensors: cannot be loaded",
        ),
    ],
)
def test_bundles_that_do_not_fit(nmt: Run, bundle: Path, name: str, content: bytes, text: str) -> None:
    rewrite(bundle, name, content)
    result = nmt("translate", "--run", bundle, "Hello.")
    assert result.status == 1
    assert text in result.err


def test_wrong_calls(nmt: Run, trained: Path, bundle: Path, tmp_path: Path) -> None:
    assert "toy.nmt/config.yaml with --set decoding.beam=0: decoding.beam: must be at least 1" in (
        nmt("translate", "--run", bundle, "--set", "decoding.beam=0", "Hello.").err
    )
    assert nmt("bundle", trained, "-o", tmp_path).err == f"nmt: {tmp_path}: is a folder; name a file with -o\n"
    assert "no run here" in nmt("bundle", tmp_path / "none").err
    assert "No such file or directory" in nmt("bundle", trained, "-o", tmp_path / "none" / "x.nmt").err
    shutil.copytree(trained, tmp_path / "damaged")
    (tmp_path / "damaged" / "tgt.vocab.txt").unlink()
    assert "tgt.vocab.txt" in nmt("bundle", tmp_path / "damaged").err
    assert not (tmp_path / "damaged.nmt").exists()
