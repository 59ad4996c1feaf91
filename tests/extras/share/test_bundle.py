"""`nmt share bundle`: one file that translates as its run does; and damaged files."""

import json
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import nmt as package
from nmt.commands import evaluate
from tests.conftest import Run

WEIGHTS = "checkpoints/step-00000060/model.safetensors"
GRAPH = "checkpoints/step-00000060/graphs-int8/step.onnx"
SENTENCES = ("The dog sees the man.", "The king loves the unseen river.")


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with an evaluation; tests read it."""
    run = shutil.copytree(folder / "run", tmp_path_factory.mktemp("share") / "run")
    evaluate.command([run], metric=["BLEU"])
    return run


@pytest.fixture
def bundle(nmt: Run, trained: Path, tmp_path: Path) -> Path:
    """A copy of a bundle of the run, to write to."""
    made = trained.with_name("toy.nmt")
    if not made.exists():
        printed = nmt.prints("share", "bundle", trained, "-o", made)
        assert printed.startswith(f"{made}: {trained}, step-00000060, ")
    return Path(shutil.copy(made, tmp_path))


def test_a_bundle_translates_as_its_run_does(nmt: Run, trained: Path, bundle: Path) -> None:
    expected = nmt("translate", "--run", trained, "--json", *SENTENCES).out
    assert nmt("translate", "--run", bundle, "--json", *SENTENCES).out == expected
    assert [each.text for each in package.load(bundle).translate(SENTENCES)] == [
        json.loads(line)["text"] for line in expected.splitlines()
    ]
    ensemble = nmt("translate", "--run", bundle, "--run", trained, *SENTENCES)
    assert (ensemble.status, ensemble.out.count("\n")) == (0, 2)
    assert nmt("share", "bundle", trained).status == 0
    assert trained.with_name("run.nmt").read_bytes() == bundle.read_bytes()


def test_check_reads_a_bundle(nmt: Run, bundle: Path) -> None:
    assert "ok       checkpoint step-00000060\n" in nmt.prints("runs", "check", bundle)
    with zipfile.ZipFile(bundle) as archive:
        content = archive.read(WEIGHTS)
    rewrite(bundle, WEIGHTS, content[:-1] + b"?")
    result = nmt("runs", "check", bundle)
    assert result.err == "nmt: damaged: checkpoint step-00000060\n"
    damaged = f"damaged  {bundle}/{WEIGHTS}: damaged, its content has changed since nmt wrote it;"
    assert damaged in result.out


def test_the_lexicon_of_an_older_version_is_left_alone(
    nmt: Run, trained: Path, bundle: Path
) -> None:
    expected = nmt("translate", "--run", bundle, *SENTENCES).out
    config = yaml.safe_load((trained / "config.yaml").read_text())
    config["decoding"]["shortlist"] = 0
    rewrite(bundle, "config.yaml", yaml.safe_dump(config).encode())
    rewrite(bundle, "lexicon.tsv", b"source\ttarget\tprobability\tcount\ndog\tHund\t1.0000\t7\n")
    assert nmt("translate", "--run", bundle, *SENTENCES).out == expected


def rewrite(bundle: Path, name: str, content: bytes, **values: Any) -> None:
    """Replace or add a member. values: of its entry, other than `zipfile` would write them."""
    with zipfile.ZipFile(bundle) as archive:
        members = {each: archive.read(each) for each in archive.namelist() if each != name}
    with zipfile.ZipFile(bundle, "w") as archive:
        for each, old in members.items():
            archive.writestr(each, old)
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
        for key, value in values.items():  # the list of members is written when the archive closes
            setattr(entry, key, value)


def test_damaged_files(nmt: Run, bundle: Path) -> None:
    content, middle = bytearray(bundle.read_bytes()), bundle.stat().st_size // 2
    content[middle] ^= 1
    for damaged in (content, content[:middle], b"text"):
        bundle.write_bytes(damaged)
        for command in (("translate", "--run", bundle, "Hello."), ("runs", "show", bundle)):
            nmt.refuses(f"nmt: {bundle}: no bundle, or damaged (", *command)
            nmt.refuses("name the folder of a run, or a file that `nmt share bundle` wr", *command)


@pytest.mark.parametrize(
    ("name", "content", "values", "text"),
    [
        (
            "bundle.json",
            b'{"format": "nmt bundle", "format_version": 2}',
            {},
            "made by a newer nmt (format 2, this version reads 1)",
        ),
        *(
            ("bundle.json", content, {}, "bundle.json is no JSON object; name the folder of a run")
            for content in (b"[]", b"1", b"null", b'"a"', b"NaN", b"true", b"[[1]]")
        ),
        *(
            ("bundle.json", content, {}, "no bundle, or damaged (")
            for content in (b"", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff")
        ),
        ("bundle.json", b'{"format_version": [1], "checkpoint": {}}', {}, "no bundle; name"),
        ("checkpoints/best.json", b"[]", {}, "best.json: damaged"),
        ("checksums.json", b"[1]", {}, "checksums.json: damaged"),
        ("bundle.json", b'{"format": "other"}', {}, "no bundle; name the folder of a run"),
        (
            "bundle.json",
            b'{"format": "nmt bundle", "format_version": 1, "checkpoint": "../.."}',
            {},
            "no bundle; name the folder of a run",
        ),
        ("bundle.json", b"[", {}, "no bundle, or damaged (Expecting value"),
        ("bundle.json", b"[" * 20_000, {}, "no bundle, or damaged (maximum recursion depth"),
        (
            "../outside",
            b"",
            {},
            "no bundle, or damaged ('../outside' has no place in it); name the folder of a run",
        ),
        ("checkpoints/step-00000060/../../outside", b"", {}, "has no place in it"),
        ("config.yaml/", b"", {}, "has no place in it"),
        (
            "checkpoints/best.json",
            b'{"checkpoint": "../..", "step": 60}',
            {},
            "best.json: damaged; it should name a checkpoint beside it",
        ),
        ("src.vocab.txt", b"dog\n", {}, "src.vocab.txt, line 1: expected a token, a tab and its"),
        (GRAPH, b"dog\n", {}, f"toy.nmt/{GRAPH}: damaged, its content has changed since nmt"),
        (GRAPH.replace("step.", "x."), b"", {}, "has no place in it"),
        ("neighbors.tsv", bytes(10**8), {}, "it would unpack to 100."),
        ("neighbors.tsv", b"dog", {"file_size": 10**15}, "it would unpack to 1,000,000,0"),
        ("neighbors.tsv", bytes(10**6), {"file_size": 100}, "Bad CRC-32 for file 'neighbors.tsv'"),
        ("neighbors.tsv", b"dog", {"file_size": 1000}, "has another size than it declares"),
        ("neighbors.tsv", b"dog", {"compress_size": 1}, "no bundle, or damaged ("),
        (
            "neighbors.tsv",
            b"/etc/hostname",
            {"external_attr": (stat.S_IFLNK | 0o777) << 16},
            "neighbors.tsv is a link, not a file",
        ),
        ("neighbors.tsv", b"dog", {"flag_bits": 1}, "is encrypted, or compressed in another way"),
        (
            "neighbors.tsv",
            b"dog",
            {"compress_type": zipfile.ZIP_LZMA},
            "neighbors.tsv is encrypted, or compressed in another way",
        ),
    ],
)
def test_hostile_bundles_are_refused_and_leave_nothing(
    nmt: Run,
    bundle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: bytes,
    values: dict[str, Any],
    text: str,
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    rewrite(bundle, name, content, **values)
    nmt.refuses(text, "translate", "--run", bundle, "Hello.")
    assert [*temporary.iterdir()] == []


def test_evaluate_names_the_data_that_a_bundle_needs(
    nmt: Run, bundle: Path, folder: Path, tmp_path: Path
) -> None:
    elsewhere = shutil.copytree(folder / "prepared", tmp_path / "elsewhere")
    with zipfile.ZipFile(bundle) as archive:
        config = archive.read("config.yaml").decode()
    rewrite(bundle, "config.yaml", config.replace(str(folder / "prepared"), "data/none").encode())
    text = (
        f"nmt: data/none: missing, the data of {bundle}; if it is elsewhere, name it with --data, "
        "or name other sentences with --sources and --references\n"
    )
    nmt.refuses(text, "evaluate", bundle)
    assert nmt("evaluate", bundle, "--data", elsewhere, "--metric", "chrF").status == 0


def test_show_knows_a_bundle_as_its_run(nmt: Run, trained: Path, bundle: Path) -> None:
    run, packed = (
        json.loads(nmt("runs", "show", each, "--json").out) for each in (trained, bundle)
    )
    assert (packed["run"], packed["state"]) == (str(bundle), "weights only")
    for key in ("not_default", "data", "vocabulary", "evaluations"):
        assert packed[key] == run[key], key
    text = "training      not in this copy: it translates, but its training cannot resume\n"
    assert text in nmt("runs", "show", bundle).out


def test_an_unpacked_bundle_is_a_run_that_cannot_resume(
    nmt: Run, trained: Path, bundle: Path, tmp_path: Path
) -> None:
    run = tmp_path / "unpacked"
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(run)
    names = {path.name for path in run.rglob("*")}
    expected = {"config.yaml", "history.jsonl", "model.safetensors", "step.onnx", "tgt.vocab.txt"}
    assert expected <= names
    assert not any("optimizer" in name or "journal" in name for name in names)
    result = nmt("runs", "check", run)
    assert (result.status, "damaged" in result.out) == (0, False)
    assert json.loads(nmt("runs", "list", tmp_path, "--json").out)[0]["state"] == "weights only"
    train = ("train", "-c", run / "config.yaml", "-q", "-o")
    assert nmt(*train, run, "--resume").err == (
        f"nmt: {run}: is a copy without the state of training, which cannot resume; "
        f"start from it with `--set training.start_from={run} -o ...`\n"
    )
    settings = ("--set", f"training.start_from={run}", "--set", "training.max_steps=1")
    assert nmt(*train, tmp_path / "new", *settings).status == 0


def test_wrong_calls(nmt: Run, trained: Path, bundle: Path, tmp_path: Path) -> None:
    text = "toy.nmt/config.yaml with --set: decoding.beam: must be at least 1"
    nmt.refuses(text, "translate", "--run", bundle, "--set", "decoding.beam=0", "Hello.")
    damaged = shutil.copytree(trained, tmp_path / "damaged")
    (damaged / "tgt.vocab.txt").unlink()
    for words, text in {
        (trained, "-o", tmp_path): f"nmt: {tmp_path}: is a folder; name a file with -o\n",
        (tmp_path / "none",): "no run here",
        (trained, "-o", tmp_path / "none" / "x.nmt"): "No such file or directory",
        (damaged,): "tgt.vocab.txt",
    }.items():
        nmt.refuses(text, "share", "bundle", *words)
    assert not (tmp_path / "damaged.nmt").exists()
