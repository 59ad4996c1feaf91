"""What a translation owes to each source word, and the tree of the beam: the requests' answers."""

from collections.abc import Iterator
from math import exp
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from fastapi.testclient import TestClient

from nmt.decoding.forced import score_pairs
from nmt.decoding.warnings import WarningChecker
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.schemas import Run, TreeAnswer, WithoutAnswer
from nmt.extras.serve.whatif import beam_tree
from nmt.extras.texts.translator import TextTranslator
from tests.decoding.test_translator import make_translator
from tests.extras.serve.test_app import DOG, client_of, error_of


@pytest.fixture
def client(served: list[ServedRun]) -> Iterator[TestClient]:
    with client_of(served, characters=200) as client:
        yield client


def translation_of(client: TestClient, **fields: Any) -> dict[str, Any]:
    answer = client.post("/translate", json={"q": DOG, "details": True, **fields}).json()
    translation: dict[str, Any] = answer["lines"][0]["translations"][0]
    return translation


def test_losses_without_each_word(client: TestClient, served: list[ServedRun]) -> None:
    """Those of forced decoding of the text without the word."""
    for fields in ({}, {"prefix": "Der König"}):  # also of a translation that the user changed
        details = translation_of(client, **fields)
        answer = client.post("/without", json={"q": DOG, "tokens": details["tokens"]}).json()
        WithoutAnswer.model_validate(answer)
        words = DOG.removesuffix(".").split()
        texts = [" ".join([*words[:i], *words[i + 1 :]]) + "." for i in range(len(words) - 1)]
        texts.append(" ".join(words[:-1]))  # the full stop belongs to the last word
        whole, *others = score_pairs(
            served[0].translator, [(text, details["text"]) for text in (DOG, *texts)]
        )
        assert whole.tokens == (*details["tokens"],)
        expected = [
            [a - b for a, b in zip(whole.token_log_probs, other.token_log_probs, strict=True)]
            for other in others
        ]
        assert answer["run"] == "run"
        assert len(answer["losses"]) == len(expected)
        for losses, each in zip(answer["losses"], expected, strict=True):
            assert losses == pytest.approx(each, abs=2e-4)


def test_a_token_that_is_several_for_the_model_has_the_sum(client: TestClient) -> None:
    tokens = translation_of(client)["tokens"]
    single = client.post("/without", json={"q": DOG, "tokens": tokens}).json()["losses"]
    joined = client.post(
        "/without", json={"q": DOG, "tokens": [" ".join(tokens[:2]), *tokens[2:]]}
    ).json()["losses"]
    for row, other in zip(single, joined, strict=True):
        assert other == pytest.approx([row[0] + row[1], *row[2:]], abs=2e-4)


def test_a_single_word_has_nothing_to_leave_out(client: TestClient) -> None:
    for text in ("dog", ""):
        assert client.post("/without", json={"q": text, "tokens": ["Hund"]}).json()["losses"] == []


def test_the_tree_has_what_the_beam_kept(client: TestClient, served: list[ServedRun]) -> None:
    answer = client.post("/tree", json={"q": DOG}).json()
    TreeAnswer.model_validate(answer)
    nodes = answer["nodes"]
    depths: list[int] = []
    for index, node in enumerate(nodes):
        parent = node["parent"]
        assert parent is None or (parent < index and not nodes[parent]["ends"])
        before = 0.0 if parent is None else nodes[parent]["log_prob"]
        assert exp(node["log_prob"] - before) == pytest.approx(node["probability"], abs=1e-4)
        assert node["ends"] == (node["text"] == "<eos>")
        depths.append(0 if parent is None else depths[parent] + 1)
    assert depths == sorted(depths)
    for depth in {*depths}:
        kept = [n["log_prob"] for n, each in zip(nodes, depths, strict=True) if each == depth]
        assert kept == sorted(kept, reverse=True)
        assert len(kept) <= 5
    best = served[0].translator.sentences.translate_n_best([DOG], 5)[0]
    ranked = sorted((node for node in nodes if node["rank"] is not None), key=lambda n: n["rank"])
    assert [node["rank"] for node in ranked] == [*range(len(ranked))]
    paths = []
    for node in ranked:
        path, place = list[str](), nodes.index(node)
        while place is not None:
            path.insert(0, nodes[place]["text"])
            place = nodes[place]["parent"]
        paths.append((*path[:-1],))
    assert paths[0] == best[0].tokens
    assert ranked[0]["log_prob"] == pytest.approx(best[0].log_prob)
    assert {each.tokens for each in best} <= {*paths}


def test_a_translation_that_is_cut_ends_in_the_tree() -> None:
    translator = make_translator(max_length_ratio=0.1, min_length_ratio=50)
    info = Run(name="", source="en", target="en", translations=3)
    checker = WarningChecker(translator.tokenizers, translator.vocabularies)
    run = ServedRun(info, TextTranslator.of(translator), checker)
    nodes = beam_tree(run, "ab")
    assert [node["text"] for node in nodes if node["ends"]]
    assert all(
        node["rank"] is not None and node["text"] != "<eos>" for node in nodes if node["ends"]
    )


@pytest.mark.parametrize(
    ("path", "fields", "status", "text"),
    [
        ("/without", {"q": DOG}, 422, "tokens: Field required"),
        (
            "/without",
            {"q": DOG, "tokens": ["zebra"]},
            422,
            "token 'zebra' is not in the target vocabulary; a translation with a placeholder, tag "
            "or term has no probability",
        ),
        (
            "/without",
            {"q": DOG, "tokens": ["a"] * 1001},
            422,
            "tokens: List should have at most 1000",
        ),
        (
            "/without",
            {"q": "a " * 99, "tokens": ["Hund"] * 1000},
            422,
            "99 words with 1000 tokens are too many; split the text",
        ),
        ("/tree", {"q": "a\nb"}, 422, "q: only one line of text"),
        ("/tree", {"q": " "}, 422, "there is no beam: the text is empty, or the run draws samples"),
        ("/tree", {"q": "x" * 201}, 413, "201 characters; a request has at most 200; split it"),
    ],
)
def test_invalid_requests(
    client: TestClient, path: str, fields: dict[str, Any], status: int, text: str
) -> None:
    found, error = error_of(client.post(path, json=fields))
    assert (found, error[: len(text)]) == (status, text)
