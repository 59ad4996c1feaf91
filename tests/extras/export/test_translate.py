"""The translator of an exported run: it finds what nmt finds, needs neither nmt nor torch, and
refuses what is wrong with its folder.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nmt
from nmt.config.schema import TokenizerConfig
from nmt.extras.export import translate
from nmt.extras.export.command import export_run
from nmt.extras.export.translate import Tokenizer, TranslationError, Translator
from nmt.files import read_json, sha256_of, write_json
from nmt.run.load import find_run_and_checkpoint
from nmt.text.tokenizers import CharacterTokenizer, WordTokenizer
from tests import toy

Edit = Callable[[Path], object]
TEXTS = [
    "The dog sees the tree.",
    "the KING  knows Anna",
    "",
    "A man.",
    "The River, the river: the river?",
    "Zoë",
    "12:30",
    "  …  ",
    "★ 7",
    "the {{dog}}★★ knows",
]


def export(run: Path, folder: Path, *overrides: str) -> Path:
    export_run(*find_run_and_checkpoint(run), folder, overrides)
    return folder


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with lower-cased words; rare ones are unknown."""
    folder = tmp_path_factory.mktemp("words")
    return toy.train(
        folder, tokenizer={"kind": "words", "lowercase": True}, vocabulary={"max_size": 16}
    )


@pytest.fixture(scope="module")
def subwords(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.train(tmp_path_factory.mktemp("subwords"), tokenizer={"kind": "bpe", "size": 60})


@pytest.fixture(scope="module")
def exported(subwords: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(subwords, tmp_path_factory.mktemp("exported") / "subwords")


def check(
    run: Path, folder: Path, *overrides: str, n: int = 3, **options: Any
) -> list[list[translate.Translation]]:
    """Compare n-best lists of nmt and of the export."""
    expected = nmt.load(run, overrides=overrides).translate_n_best(TEXTS, n)
    results = Translator(folder, **options).translate_n_best(TEXTS, n)
    for best, expected_best in zip(results, expected, strict=True):
        assert [(each.text, each.tokens, each.src_tokens) for each in best] == [
            (each.text, each.tokens, each.src_tokens) for each in expected_best
        ]
        assert [each.score for each in best] == pytest.approx(
            [each.score for each in expected_best], abs=1e-4
        )
        for each, reference in zip(best, expected_best, strict=True):
            np.testing.assert_allclose(each.attention, reference.attention, atol=1e-4)
    return results


def test_subwords(subwords: Path, exported: Path) -> None:
    results = check(subwords, exported)
    assert "er Hund" in results[0][0].text
    assert [best.text for best in results[2]] == [""]


def test_several_batches_in_threads(subwords: Path, tmp_path: Path) -> None:
    batches = ["decoding.batch=2", "decoding.beam=2"]
    check(subwords, export(subwords, tmp_path / "export", *batches), *batches, n=1, threads=3)


def test_unknown_words_are_copied_and_long_sentences_cut(words: Path, tmp_path: Path) -> None:
    settings = ["decoding.max_source_tokens=6"]
    results = check(words, export(words, tmp_path / "export", *settings), *settings)
    assert any(
        "<unk>" in each.tokens and "<unk>" not in each.text for best in results for each in best
    )


def test_int8(subwords: Path, exported: Path, tmp_path: Path) -> None:
    folder = export(subwords, tmp_path / "int8", "decoding.precision=int8")
    sizes = [(each / "step.onnx").stat().st_size for each in (folder, exported)]
    assert sizes[0] < 0.75 * sizes[1]
    assert "er Hund" in Translator(folder).translate(TEXTS[:1])[0]


TOKENIZERS = [
    (
        Tokenizer("characters", lowercase=lowercase),
        CharacterTokenizer(TokenizerConfig(kind="characters", lowercase=lowercase), "de", Path()),
    )
    for lowercase in (False, True)
]


@given(st.text(max_size=20))
def test_tokens_are_those_of_nmt(text: str) -> None:
    for ours, theirs in TOKENIZERS:
        tokens = theirs.split(text)
        assert ours.split_all([text]) == [tokens]
        assert ours.join(tokens) == theirs.join(tokens)


def test_words_are_those_of_nmt() -> None:
    import spacy.about

    theirs = WordTokenizer(TokenizerConfig(kind="words"), "en", Path())
    ours = Tokenizer("words", language="en", version=spacy.about.__version__, model=b"")
    for text in ("Don't (you) go: 3.5 km...", " ￭a b", "U.S.-based\u00ad"):
        tokens = theirs.split(text)
        assert ours.split_all([text]) == [tokens]
        assert ours.join(tokens) == theirs.join(tokens)
    with pytest.raises(
        TranslationError,
        match=r"^spacy [\d.]+: splits other words than in training; install spacy==0\.1$",
    ):
        Tokenizer("words", language="en", version="0.1", model=b"")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, exported: Path) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(
        TranslationError,
        match=r"^the tokenizer needs sentencepiece; run `pip install -r requirements\.txt`$",
    ):
        Translator(exported)


def command(folder: Path, *words: object, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run the exported translator alone, without nmt on its path."""
    program = [
        sys.executable,
        "-P",
        "-c",
        "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__');",
    ]
    program[-1] += "assert not {'nmt', 'torch', 'onnx'} & set(sys.modules), 'imports too much'"
    result = subprocess.run(
        [*program, folder / "translate.py", *map(str, words)],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=folder.parent,
    )
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def test_the_command_line(subwords: Path, exported: Path, tmp_path: Path) -> None:
    expected = [translation.text for translation in nmt.load(subwords).translate(TEXTS)]
    text = "".join(f"{line}\n" for line in expected)
    assert command(exported, stdin="\ufeff".encode() + "\r\n".join(TEXTS).encode()) == (0, text, "")
    assert command(exported, stdin="".join(f"{text}\r" for text in TEXTS).encode())[1] == text
    (tmp_path / "bad.txt").write_bytes(b"\xff\n")
    status, out, err = command(exported, "--file", tmp_path / "bad.txt")
    assert (status, out, err) == (
        1,
        "",
        f"translate.py: {tmp_path / 'bad.txt'}: not UTF-8 (invalid start byte); save it as UTF-8\n",
    )


def test_arguments(
    exported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["translate.py", *map(str, words)])
        monkeypatch.setattr(translate, "__file__", str(exported / "translate.py"))
        translate.main()
        return capsys.readouterr().out

    first, second, *_ = run(
        "--n-best", 2, "--beam", 3, "The dog sees the tree.", "A man."
    ).splitlines()
    assert re.fullmatch(r"0 \|\|\| .*er Hund .* \|\|\| -\d\.\d{4}", first)
    assert second.startswith("0 ||| ")
    with pytest.raises(SystemExit, match=r"^translate\.py: no\.txt: No such file or directory$"):
        run("--file", "no.txt")
    with pytest.raises(
        SystemExit, match="9 translations per sentence: the beam is 5; set it with --beam"
    ):
        run("--n-best", 9, "A man.")


# --- A folder that is damaged, or comes from a stranger: one line says what is wrong, and little
# memory is needed for it.


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return shutil.copytree(exported, tmp_path / "export")


def forged(name: str, change: Callable[[Path], object]) -> Edit:

    def edit(folder: Path) -> None:
        change(folder / name)
        content = read_json(folder / "settings.json")
        content["sha256"] = {
            path.name: sha256_of(path)
            for path in folder.iterdir()
            if path.name in content["sha256"]
        }
        write_json(folder / "settings.json", content)

    return edit


def linked(target: str) -> Callable[[Path], object]:
    def link(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return link


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def graph(**tensors: Any) -> Callable[[Path], object]:
    """A graph with the inputs and outputs of another one, and with only these tensors."""

    def write(path: Path) -> None:
        import onnx

        model = onnx.load(path)
        del model.graph.node[:], model.graph.initializer[:]
        model.graph.initializer.extend(tensors.values())
        path.write_bytes(model.SerializeToString())

    return write


def tensor(name: str, dims: list[int], location: str = "") -> Any:
    """A tensor of `dims` whose values are missing, or in another file."""
    import onnx

    proto = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=dims)
    if location:
        proto.data_location = onnx.TensorProto.EXTERNAL
        proto.external_data.add(key="location", value=location)
    return proto


AGAIN = "copy the whole folder again, or write it again with `nmt export`"
LINK = "outside of the folder; copy the whole folder, without links"


def change(name: str, function: Callable[[Path], object]) -> Edit:
    """A changed file with the checksum of before."""
    return lambda folder: function(folder / name)


# A file of 10 GB that takes no space.
sparse = partial(os.truncate, length=10_000_000_000)
HOSTILE: dict[str, tuple[Edit, str]] = {
    "empty folder": (
        lambda folder: [*map(Path.unlink, folder.iterdir())],
        "settings.json: No such file or directory; copy",
    ),
    "no graph": (
        change("step.onnx", Path.unlink),
        f"step.onnx: No such file or directory; {AGAIN}",
    ),
    **{
        f"one bit of {name}": (
            change(name, flip_a_bit),
            f"{name}: damaged, its content has changed",
        )
        for name in ("encoder.onnx", "step.onnx", "src.vocab.txt", "tgt.vocab.txt", "src.spm.model")
    },
    "edited settings": (
        change(
            "settings.json",
            lambda path: path.write_bytes(path.read_bytes().replace(b'"beam": 5', b'"beam": 4')),
        ),
        "settings.json: damaged (its content does not fit its checksum)",
    ),
    "nested JSON": (
        change("settings.json", lambda path: path.write_bytes(b"[" * 100_000)),
        "settings.json: damaged (",
    ),
    "newer": (
        change("settings.json", lambda path: write_json(path, {**read_json(path), "format": 9})),
        "made by a newer nmt; use the translate.py of that folder",
    ),
    "linked settings": (change("settings.json", linked("/etc/passwd")), f"/etc/passwd, {LINK}"),
    "linked graph": (change("step.onnx", linked("/dev/zero")), f"links to /dev/zero, {LINK}"),
    "links in a circle": (change("src.vocab.txt", linked("src.vocab.txt")), "src.vocab.txt: "),
    "pipe": (change("tgt.vocab.txt", fifo), "tgt.vocab.txt: not a file of at most"),
    "huge settings": (change("settings.json", sparse), "not a file of at most 67,108,864 bytes"),
    "huge vocabulary": (change("src.vocab.txt", sparse), "not a file of at most 268,435,456 bytes"),
    "huge graph": (change("encoder.onnx", sparse), "not a file of at most 2,147,483,648 bytes"),
    "no subwords": (
        forged("src.spm.model", lambda path: path.write_bytes(b"\x0a\xff\xff\xff\xff\x07")),
        "src.spm.model: not a readable",
    ),
    "long header": (
        forged("step.onnx", lambda path: path.write_bytes(b"\x3a\xff\xff\xff\xff\x07")),
        "step.onnx: cannot be loaded (",
    ),
    "huge tensor": (
        forged("step.onnx", graph(w=tensor("w", [10**6, 10**6]))),
        "step.onnx: cannot be loaded (",
    ),
    "tensor of a file": (
        forged("step.onnx", graph(w=tensor("w", [9], "/etc/passwd"))),
        f"step.onnx: takes tensors from other files; {AGAIN}",
    ),
}
HOSTILE = {name: row for name, row in HOSTILE.items() if hasattr(os, "mkfifo") or name != "pipe"}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(("edit", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_a_folder_from_a_stranger(folder: Path, edit: Edit, expected: str) -> None:
    edit(folder)
    with pytest.raises(TranslationError) as error:
        Translator(folder).translate(TEXTS[:1])
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_links_inside_of_the_folder_are_followed(folder: Path) -> None:
    (folder / "step.onnx").rename(folder / "x")
    (folder / "step.onnx").symlink_to("x")
    (folder.parent / "link").symlink_to(folder)
    assert Translator(folder.parent / "link").translate(TEXTS[:1])
