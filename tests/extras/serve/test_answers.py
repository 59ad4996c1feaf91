"""Questions about a translation: alternatives for a word, and the tree of the beam."""

from collections import Counter
from math import exp

import pytest
from fastapi.testclient import TestClient

from nmt.decoding.forced import score_pairs
from nmt.extras.serve.answers import MIN_PROBABILITY, ServedRun, beam_tree, group_words
from nmt.extras.serve.schemas import AlternativesAnswer, TreeAnswer
from tests.decoding.test_translator import make_translator
from tests.extras.serve.conftest import DOG, tiny_run


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
    best = served[0].texts.sentence_translator.translate_n_best([DOG], 5)[0]
    ranked = {n.rank: path[:-1] for path, n in zip(paths, nodes, strict=True) if n.rank is not None}
    assert sorted(ranked) == [*range(len(ranked))]
    assert ranked[0] == best[0].tokens
    (first,) = (node for node in nodes if node.rank == 0)
    assert first.log_prob == pytest.approx(best[0].log_prob)
    assert {each.tokens for each in best} <= {*ranked.values()}


def test_a_translation_that_is_cut_ends_in_the_tree() -> None:
    nodes = beam_tree(tiny_run(max_length_ratio=0.1, min_length_ratio=50), "ab")
    ends = [node for node in nodes if node["ends"]]
    assert ends
    assert all(node["rank"] is not None and node["text"] != "<eos>" for node in ends)


def test_the_alternatives_for_a_word(client: TestClient, served: list[ServedRun]) -> None:
    translated = client.post("/translate", json={"q": DOG, "details": True}).json()
    details = translated["lines"][0]["translations"][0]
    word = details["words"][2]
    fields = {"q": DOG, "tokens": details["tokens"][: word["token"]], "alternatives": 4}
    answer = client.post("/alternatives", json=fields).json()
    AlternativesAnswer.model_validate(answer)
    words = [alternative["word"] for alternative in answer["alternatives"]]
    texts = [alternative["translation"]["text"] for alternative in answer["alternatives"]]
    assert (words[0], texts[0]) == (word["text"], details["text"])
    start = details["text"].split()[:2]
    assert [text.split()[:3] for text in texts] == [[*start, word] for word in words]
    assert len({*texts}) == len(texts)
    assert [alternative["warnings"] for alternative in answer["alternatives"]] == [[]] * len(texts)
    pairs = [(DOG, text) for text in texts]
    scored = score_pairs(served[0].texts.sentence_translator, pairs)
    expected = [exp(each.token_log_probs[word["token"]]) for each in scored]
    probabilities = [alternative["probability"] for alternative in answer["alternatives"]]
    assert probabilities == pytest.approx(expected, abs=1e-4)
    assert probabilities == sorted(probabilities, reverse=True)
    assert all(probability >= MIN_PROBABILITY for probability in probabilities[1:])
    # a token of the details that is several ones for the model, such as a number
    one = client.post("/alternatives", json={**fields, "tokens": [" ".join(start)]}).json()
    assert one == answer


def test_words_of_scripts_without_spaces_are_tokens() -> None:
    tokenizer = make_translator("words").tgt_tokenizer
    assert group_words("你好。 Hund", ["你好", "￭。", "Hund"], tokenizer) == (
        ["你好", "。", "Hund"],
        [0, 1, 2],
    )
    assert group_words("Na, so was!", ["Na", "￭,", "so", "was", "￭!"], tokenizer) == (
        ["Na,", "so", "was!"],
        [0, 0, 1, 2, 2],
    )
