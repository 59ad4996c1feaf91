"""What a translation owes to each source word, and the tree of the beam: the requests' answers."""

from collections import Counter
from collections.abc import Iterator
from math import exp
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from fastapi.testclient import TestClient

from nmt.decoding.forced import score_pairs
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.schemas import Run, TreeAnswer, WithoutAnswer
from nmt.extras.serve.whatif import beam_tree
from nmt.texts.translator import TextTranslator
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


def losses_of(client: TestClient, text: str, tokens: list[str]) -> list[list[float]]:
    answer = client.post("/without", json={"q": text, "tokens": tokens}).json()
    assert WithoutAnswer.model_validate(answer).run == "run"
    losses: list[list[float]] = answer["losses"]
    return losses


@pytest.mark.parametrize("fields", [{}, {"prefix": "Der König"}])  # also of what a user changed
def test_losses_without_each_word(
    client: TestClient, served: list[ServedRun], fields: dict[str, str]
) -> None:
    """Those of forced decoding of the text without the word."""
    details = translation_of(client, **fields)
    words = DOG.removesuffix(".").split()
    texts = [" ".join([*words[:i], *words[i + 1 :]]) + "." for i in range(len(words) - 1)]
    texts.append(" ".join(words[:-1]))  # the full stop belongs to the last word
    pairs = [(text, details["text"]) for text in (DOG, *texts)]
    whole, *others = score_pairs(served[0].translator, pairs)
    assert whole.tokens == (*details["tokens"],)
    expected = [np.subtract(whole.token_log_probs, each.token_log_probs) for each in others]
    losses = losses_of(client, DOG, details["tokens"])
    np.testing.assert_allclose(losses, expected, rtol=0, atol=2e-4)


def test_a_token_that_is_several_for_the_model_has_the_sum(client: TestClient) -> None:
    tokens = translation_of(client)["tokens"]
    single = np.array(losses_of(client, DOG, tokens))
    joined = losses_of(client, DOG, [" ".join(tokens[:2]), *tokens[2:]])
    expected = np.hstack([single[:, :2].sum(1, keepdims=True), single[:, 2:]])
    np.testing.assert_allclose(joined, expected, rtol=0, atol=2e-4)


def test_a_single_word_has_nothing_to_leave_out(client: TestClient) -> None:
    for text in ("dog", ""):
        assert losses_of(client, text, ["Hund"]) == []


def test_the_tree_has_what_the_beam_kept(client: TestClient, served: list[ServedRun]) -> None:
    nodes = TreeAnswer.model_validate(client.post("/tree", json={"q": DOG}).json()).nodes
    paths = list[tuple[str, ...]]()
    for index, node in enumerate(nodes):
        parent = None if node.parent is None else nodes[node.parent]
        assert parent is None or (nodes.index(parent) < index and not parent.ends)
        before = 0.0 if parent is None else parent.log_prob
        assert exp(node.log_prob - before) == pytest.approx(node.probability, abs=1e-4)
        assert node.ends == (node.text == "<eos>")
        paths.append((*(() if node.parent is None else paths[node.parent]), node.text))
    order = [(len(path), -node.log_prob) for path, node in zip(paths, nodes, strict=True)]
    assert order == sorted(order)
    assert max(Counter(map(len, paths)).values()) <= 5
    best = served[0].translator.translate_n_best([DOG], 5)[0]
    ranked = {n.rank: path[:-1] for path, n in zip(paths, nodes, strict=True) if n.rank is not None}
    assert sorted(ranked) == [*range(len(ranked))]
    assert ranked[0] == best[0].tokens
    (first,) = (node for node in nodes if node.rank == 0)
    assert first.log_prob == pytest.approx(best[0].log_prob)
    assert {each.tokens for each in best} <= {*ranked.values()}


def test_a_translation_that_is_cut_ends_in_the_tree() -> None:
    translator = make_translator(max_length_ratio=0.1, min_length_ratio=50)
    info = Run(name="", source="en", target="en", translations=3)
    run = ServedRun(info, TextTranslator(translator))
    nodes = beam_tree(run, "ab")
    ends = [node for node in nodes if node["ends"]]
    assert ends
    assert all(node["rank"] is not None and node["text"] != "<eos>" for node in ends)


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
