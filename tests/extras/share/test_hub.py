"""`nmt share push` and `nmt share pull` against a stand-in for the hub: the way there and back, and
what can go wrong on it.
"""

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import constants

from nmt.files import read_json, write_recorded
from tests.conftest import Run
from tests.extras.share.hub import TOKEN, Hub, Repository, running_hub

# The library uploads files by `data=`.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

SENTENCES = ("The dog sees the man.", "The king loves the unseen river.")
CHECKPOINT = "step-00000060"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The stand-in, with the access token of its owner; the current folder is empty."""
    with running_hub() as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.address)
        values = {
            "HUGGINGFACE_CO_URL_TEMPLATE": template,
            "ENDPOINT": server.address,
            "HF_HUB_DISABLE_XET": True,
            "HF_TOKEN_PATH": str(tmp_path / "token"),
            "HF_HUB_CACHE": str(tmp_path / "cache"),
        }
        for name, value in values.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        # The library logs to the stderr of an earlier test, which is closed.
        monkeypatch.setattr(logging, "raiseExceptions", False)
        (tmp_path / "work").mkdir()
        monkeypatch.chdir(tmp_path / "work")
        yield server


@pytest.fixture
def pushed(nmt: Run, hub: Hub, trained: Path) -> Repository:
    printed = nmt.prints("share", "push", trained, "me/toy", "--license", "cc-by-2.0")
    repository = hub.repositories["me/toy"]
    address = f"{hub.address}/me/toy/commit/{repository.commits[-1][0]}"
    assert printed == f"{address}: {trained}, {CHECKPOINT}\n"
    return repository


def test_there_and_back(nmt: Run, hub: Hub, pushed: Repository, trained: Path) -> None:
    expected = nmt("translate", "--run", trained, "--json", *SENTENCES).out
    commit = pushed.commits[-1][0]
    text = f"runs/toy: me/toy at {commit[:12]}, {CHECKPOINT}\n"
    assert nmt.prints("share", "pull", "me/toy") == text
    for choice in (["--run", "runs/toy"], []):  # the newest run
        assert nmt("translate", *choice, "--json", *SENTENCES).out == expected
    names = {name.partition("/")[0] for name in pushed.files}
    names ^= {".gitattributes", "model.safetensors", "checkpoints", "checksums.json", "graphs-int8"}
    assert {path.name for path in Path("runs/toy").iterdir()} == names
    assert [*Path("runs").iterdir()] == [Path("runs/toy")]
    assert read_json(Path("runs/toy/bundle.json"))["revision"] == commit
    weights = Path("runs/toy/checkpoints", CHECKPOINT)
    graph = "graphs-int8/output.onnx"
    assert (weights / graph).read_bytes() == pushed.files[graph]

    check = nmt("runs", "check", "runs/toy")
    assert (check.status, "damaged" in check.out) == (0, False)
    facts = json.loads(nmt("runs", "show", "runs/toy", "--json").out)
    metric = facts["evaluations"][0]["scores"][0]["metric"]
    assert (facts["state"], metric) == ("weights only", "BLEU")
    nmt.prints("share", "push", "runs/toy", "me/copy")
    assert hub.repositories["me/copy"].files["README.md"] == pushed.files["README.md"]


def test_what_is_pushed(pushed: Repository, trained: Path) -> None:
    assert {*pushed.files} == {
        ".gitattributes",
        "README.md",
        "bundle.json",
        "config.yaml",
        "evaluation/history.jsonl",
        "graphs-int8/check.onnx",
        "graphs-int8/encoder.onnx",
        "graphs-int8/graphs.json",
        "graphs-int8/output.onnx",
        "graphs-int8/step.onnx",
        "manifest.json",
        "model.safetensors",
        "provenance.json",
        "src.vocab.txt",
        "tgt.vocab.txt",
    }
    weights = trained / "checkpoints" / CHECKPOINT / "model.safetensors"
    assert pushed.files["model.safetensors"] == weights.read_bytes()
    graph = "graphs-int8/step.onnx"
    assert pushed.files[graph] == (weights.parent / graph).read_bytes()
    for name in ("config.yaml", "manifest.json", "evaluation/history.jsonl", "README.md"):
        assert str(trained.parent).encode() not in pushed.files[name], name
    assert yaml.safe_load(pushed.files["config.yaml"])["data"]["source"]["path"] == "pairs.tsv"
    card = pushed.files["README.md"].decode()
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert (metadata["license"], metadata["language"]) == ("cc-by-2.0", ["en", "de"])
    assert "nmt share pull me/toy" in card


def test_a_private_bundle_whose_files_of_one_name_stay_different(
    nmt: Run, hub: Hub, trained: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(trained, tmp_path / "lines")
    files = {"en": "/home/me/en/train.txt", "de": "D:\\data\\de\\train.txt"}
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["data"] |= {
        "source": {"format": "lines", "files": files, "path": None, "url": None},
        "prepared": "/home/me/data/prepared",
    }
    write_recorded(run / "config.yaml", yaml.safe_dump(config))
    bundle = tmp_path / "toy.nmt"
    for words in (
        ("bundle", run, "-o", bundle),
        ("push", bundle, "me/toy", "--private"),
        ("pull", "me/toy"),
    ):
        assert nmt("share", *words).status == 0
    assert hub.repositories["me/toy"].private
    data = yaml.safe_load(hub.repositories["me/toy"].files["config.yaml"])["data"]
    assert data["source"]["files"] == {"en": "en/train.txt", "de": "de/train.txt"}
    assert data["prepared"] == "prepared"


def test_a_second_push_replaces_the_files(
    nmt: Run, pushed: Repository, trained: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(trained, tmp_path / "changed")
    (run / "evaluation/history.jsonl").unlink()
    (run / "README.md").write_text("---\nlanguage: [en, de]\n---\nMy card.\n")
    text = "its README.md is the card; write the license there"
    nmt.refuses(text, "share", "push", run, "me/toy", "--license", "mit")
    assert nmt("share", "push", run, "me/toy").status == 0
    assert "evaluation/history.jsonl" not in pushed.files
    assert pushed.files["README.md"].endswith(b"My card.\n")
    first, last = pushed.commits[1][0], pushed.commits[-1][0]
    for name, folder in ((f"me/toy@{first}", "old"), ("me/toy", "new")):
        assert nmt("share", "pull", name, "-o", folder).status == 0
    exist = [Path(name, "evaluation/history.jsonl").exists() for name in ("old", "new")]
    assert exist == [True, False]
    assert read_json(Path("new/bundle.json"))["revision"] == last


def info(repository: Repository, **values: Any) -> bytes:
    old = json.loads(repository.files["bundle.json"])
    del old["checksum"]
    return json.dumps({**old, **values}).encode()


def refused(nmt: Run, text: str, repository: str = "me/toy") -> None:
    """The error is one line with this text, and nothing is left."""
    nmt.refuses(text, "share", "pull", repository)
    assert not [*Path("runs").glob("*")]


def test_damaged_repositories_are_refused(nmt: Run, hub: Hub, pushed: Repository) -> None:
    whole = pushed.files
    changed = whole["model.safetensors"][:-1] + b"?"
    cases = {
        "me/toy/model.safetensors: missing or damaged; pull": ("model.safetensors", changed),
        "me/toy/graphs-int8/step.onnx: missing or": ("graphs-int8/step.onnx", b"dog"),
        "me/toy/src.vocab.txt: missing or damaged": ("src.vocab.txt", b"dog\t1\n"),
        "me/toy/tgt.vocab.txt: missing or damaged": ("tgt.vocab.txt", None),
        "me/toy: holds no model of nmt (bundle.json is missing)": ("bundle.json", None),
        "me/toy/bundle.json: damaged (Expecting": ("bundle.json", b"["),
        "me/toy/bundle.json: damaged (no JSON object": ("bundle.json", b"[]"),
        "me/toy/bundle.json: damaged (nested too deep": ("bundle.json", b"[" * 100_000),
        "me/toy/bundle.json: damaged ('sha256'": ("bundle.json", b"{}"),
        "me/toy: no bundle": ("bundle.json", info(pushed, checkpoint="../../step-1")),
        "me/toy: made by a newer nmt (format 2, this version reads 1); update nmt": (
            "bundle.json",
            info(pushed, format_version=2),
        ),
    }
    for text, (name, content) in cases.items():
        files = {**whole, name: content}
        pushed.commit({each: data for each, data in files.items() if data is not None})
        refused(nmt, text)
    pushed.commit(whole)
    hub.short.add("model.safetensors")
    refused(nmt, "me/toy: Consistency check failed")
    hub.short.clear()
    assert nmt("share", "pull", "me/toy").status == 0


def test_file_names_of_strangers(nmt: Run, pushed: Repository, tmp_path: Path) -> None:
    names = json.loads(pushed.files["bundle.json"])["sha256"]
    strange = ("../outside", "/tmp/outside", "runs/../../outside", "..\\outside", "optimizer.bin")
    listed = info(pushed, sha256={**names, **dict.fromkeys(strange, "0")})
    pushed.commit({**pushed.files, **dict.fromkeys(strange, b"outside"), "bundle.json": listed})
    assert nmt("share", "pull", "me/toy").status == 0
    assert not [*tmp_path.rglob("*outside*"), *tmp_path.rglob("optimizer.bin")]


def test_wrong_names_and_tokens(
    nmt: Run,
    hub: Hub,
    pushed: Repository,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    advice = "check the name and the network, or log in with `hf auth login`"
    for name in ("me/none", "me/toy@v9"):
        refused(nmt, advice, name)
    for name in ("a/b/c", "me/..", "https://huggingface.co/me/toy", ""):
        refused(nmt, f"nmt: {name}: Repo id must ", name)
    Path("full").mkdir()
    Path("full/file").touch()
    text = "nmt: full: exists; choose another folder with -o, or delete it\n"
    nmt.refuses(text, "share", "pull", "me/toy", "-o", "full")
    hub.repositories["me/other"] = other = Repository()
    other.commit({"pytorch_model.bin": b"dog"})
    for words, text in {
        ("me/other",): "me/other: holds something else than a model of nmt (pytorch_model.bin)",
        ("me/toy", "--private"): "me/toy: exists and is public; leave out --private",
    }.items():
        nmt.refuses(text, "share", "push", trained, *words)
    pushed.private = True
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    refused(nmt, advice)
    text = f"nmt: me/new: Invalid credentials in Authorization header; {advice}\n"
    nmt.refuses(text, "share", "push", trained, "me/new")
    exported = shutil.copytree(trained, tmp_path / "exported")
    (exported / "checkpoints" / CHECKPOINT / "model.safetensors").unlink()
    text = f"nmt: {exported}: has no weights, only graphs; push the run that it was exported from"
    nmt.refuses(text, "share", "push", exported, "me/new")
    damaged = shutil.copytree(trained, tmp_path / "damaged")
    (damaged / "tgt.vocab.txt").unlink()
    nmt.refuses("tgt.vocab.txt", "share", "push", damaged, "me/new")
    assert "me/new" not in hub.repositories


def test_without_the_hub(nmt: Run, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # the port "discard"
    refused(nmt, "; check the name and the network")
