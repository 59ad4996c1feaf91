"""The alternatives for a token, and what follows from them."""

from math import exp

import pytest

from nmt.decoding.forced import score_pairs
from nmt.errors import DataError
from nmt.extras.serve.answers import MIN_PROBABILITY, find_alternatives
from tests.decoding.test_translator import make_translator


def test_each_alternative_starts_with_the_given_tokens_and_its_own() -> None:
    translator = make_translator()
    for text, prefix in [("abab", ["a", "b"]), ("b", []), ("ab ab", ["▁"])]:
        alternatives = find_alternatives(translator, text, prefix, 3)
        probabilities = [alternative.probability for alternative in alternatives]
        assert probabilities == sorted(probabilities, reverse=True)
        assert all(probability >= MIN_PROBABILITY for probability in probabilities[1:])
        assert len({alternative.token for alternative in alternatives}) == len(alternatives)
        for alternative in alternatives:
            assert alternative.translation.tokens[: len(prefix) + 1] == (*prefix, alternative.token)


def test_probabilities_are_those_of_forced_decoding() -> None:
    translator = make_translator()
    alternatives = find_alternatives(translator, "abab", ["b", "a"], 3)
    for alternative in alternatives:
        text = translator.tgt_tokenizer.join(["b", "a", alternative.token])
        (scored,) = score_pairs(translator, [("abab", text)])
        if scored.tokens == (
            "b",
            "a",
            alternative.token,
        ):  # a space at the end is not part of the text
            assert alternative.probability == pytest.approx(
                exp(scored.token_log_probs[2]), rel=1e-4
            )


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (("ab", ["c"]), "token 'c' is not in the target vocabulary"),
        (("ab", ["<eos>"]), "token '<eos>' is not in the target vocabulary"),
        ((" ", []), "the text is empty, so its translation has no alternatives"),
    ],
)
def test_impossible_requests(request_: tuple[str, list[str]], text: str) -> None:
    with pytest.raises(DataError) as error:
        find_alternatives(make_translator(), *request_, 3)
    assert str(error.value) == text
