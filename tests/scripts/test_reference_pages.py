"""The pages of the documentation that are made from the code."""

import re

import pytest

from scripts import reference_pages


def test_configuration_shows_type_bounds_and_default() -> None:
    lines = reference_pages.configuration().splitlines()
    (epochs,) = (line for line in lines if "{ #training.epochs }" in line)
    assert epochs.split(" | ")[1:] == [
        "whole number, at least 1",
        "`20`",
        "maximum number of passes over the training data |",
    ]
    (bidirectional,) = (line for line in lines if "{ #model.encoder.bidirectional }" in line)
    assert bidirectional.split(" | ")[1:3] == ["`true` or `false`", "`true`"]
    (name,) = (line for line in lines if "{ #name }" in line)
    assert "must be given" in name


def test_tables_are_not_broken() -> None:
    for make in reference_pages.PAGES.values():
        columns = 0
        for line in make().splitlines():
            if line.startswith("|"):
                cells = len(re.findall(r"(?<!\\)\|", line))
                assert columns in (0, cells), line
                columns = cells
            else:
                columns = 0


@pytest.mark.parametrize(
    ("source", "messages"),
    [
        ('raise ConfigError(f"{path}: is a file; name a folder")', ["…: is a file; name a folder"]),
        ('raise DataError("empty; " "fill it")', ["empty; fill it"]),
        ('raise DataError(f"{path}: damaged; {AGAIN}")', ["…: damaged; run it again"]),
        (
            'text = f"{a} is wrong; use {b}"\n    yield Problem(("x.y", f"{k}.z"), text)',
            ["x.y, ….z: … is wrong; use …"],
        ),
        ('raise typer.BadParameter("give one, not both")', ["give one, not both"]),
        ('a.check({"give one": a and b, f"{a}: no": c})', ["give one", "…: no"]),
        ('raise ValueError("not for users")', []),
        ("raise NmtError(text_of(path))", []),
    ],
)
def test_messages_of_a_function(source: str, messages: list[str]) -> None:
    assert [
        *reference_pages.messages_of(f"def f():\n    {source}\n", {"AGAIN": "run it again"})
    ] == messages


def test_errors_have_their_remedies() -> None:
    lines = reference_pages.error_messages().splitlines()
    assert (
        "| …: contains a run already | continue it with --resume, or train elsewhere with -o |"
        in lines
    )
    assert "| …: no run here | `nmt train -c CONFIG -o …` creates one |" in lines
