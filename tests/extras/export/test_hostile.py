"""An exported folder may be damaged, or come from a stranger: one line says what is wrong, and
little memory is needed for it.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.extras.export.command import export_run
from nmt.extras.export.translate import TranslationError, Translator
from nmt.files import read_json, sha256_of, write_json
from nmt.run.load import find_run_and_checkpoint
from tests import toy

Edit = Callable[[Path], object]
SENTENCE = "The dog sees the tree."


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported run; tests copy it."""
    folder = tmp_path_factory.mktemp("exported")
    run = toy.train(folder, training=toy.ONE_UPDATE, tokenizer={"kind": "bpe", "size": 60})
    export_run(*find_run_and_checkpoint(run), folder / "export", ())
    return folder / "export"


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return shutil.copytree(exported, tmp_path / "export")


def forged(name: str, change: Callable[[Path], object]) -> Edit:
    """A changed file with the right checksum."""

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


def newer(folder: Path) -> None:
    write_json(folder / "settings.json", {**read_json(folder / "settings.json"), "format": 9})


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content, encoding="utf-8")


def sparse(path: Path) -> None:
    """A file of 10 GB that takes no space."""
    with path.open("wb") as file:
        file.truncate(10_000_000_000)


def linked(target: str) -> Callable[[Path], object]:
    def link(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return link


def replace(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


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
        change("settings.json", lambda path: replace(path, '"beam": 5', '"beam": 4')),
        "settings.json: damaged (its content does not fit its checksum)",
    ),
    "nested JSON": (change("settings.json", text("[" * 100_000)), "settings.json: damaged ("),
    "newer": (newer, "made by a newer nmt; use the translate.py of that folder"),
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
        Translator(folder).translate([SENTENCE])
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_links_inside_of_the_folder_are_followed(folder: Path) -> None:
    (folder / "step.onnx").rename(folder / "x")
    (folder / "step.onnx").symlink_to("x")
    (folder.parent / "link").symlink_to(folder)
    assert Translator(folder.parent / "link").translate([SENTENCE])
