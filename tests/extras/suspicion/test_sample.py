"""Samples of files that are not what they seem give a warning; those of good files give none."""

import pytest

from nmt.errors import NmtWarning
from nmt.extras.suspicion.sample import check_languages, check_raw_text, find_other_language

pytestmark = pytest.mark.filterwarnings("error::nmt.errors.NmtWarning")
Pairs = list[tuple[str, str]]


def test_a_part_in_another_language_gives_a_warning(sample: Pairs) -> None:
    english, german = map(list, zip(*sample[:200], strict=True))
    for share in (60, 100):
        mixed = [*german[share:], *english[:share]]
        assert find_other_language(mixed, "de")[0] == "en"
        with pytest.warns(NmtWarning, match="of the de sentences are perhaps in another"):
            check_languages("x.tsv", [*zip(english, mixed, strict=True)], ("en", "de"))
    assert find_other_language([*german, "The end of it is not here."], "de")[1] == 0


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ja", "Zorvex Tilda Pro 充電器 黒"),
        ("ja", "The best of Zorvex for you カバー"),
        ("ko", "Zorvex Tilda Pro 검정"),
        ("zh", "Zorvex Tilda Pro 优の 黑"),
        ("de", "Zorvex Tilda Pro A25 Ladegerät schwarz"),
        ("gl", "Teño que ir á casa agora porque os nenos me agardan."),
        ("jpn", "これは私の新しい本です。"),
        ("dz", "ང་ཁྱིམ་ནང་འགྱོ་དོ།"),
        ("co", "Ùn sò micca s'ella hè in casa o in paese, ma a vecu dumane."),
        ("kg", "%s ka i nkumbu a %d ko"),
        ("qx", "blorp snix " * 5),
    ],
)
def test_names_in_other_letters_are_no_other_language(language: str, text: str) -> None:
    assert find_other_language([text] * 50, language)[1] == 0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Tea &amp; milk", "HTML entities"),
        ("a ca@@ ke", "marks of subword-nmt"),
        ("▁a ▁ca ke", "marks of SentencePiece"),
        ("The Ġca ke Ġis Ġsweet", "marks of byte-level BPE"),
        ("a cake ￭.", "marks of the OpenNMT tokenizer"),
        ("a ca ##ke", "marks of WordPiece"),
        ("a</w> ca ke</w>", "marks of the ends of words"),
        (r"Say \"now\".", "doubled or escaped quotation marks"),
        ('"Say ""now""."', "doubled or escaped quotation marks"),
        ("A cake , please .", "words split by a tokenizer"),
    ],
)
def test_text_that_is_not_raw_gives_a_warning(sample: Pairs, text: str, what: str) -> None:
    with pytest.warns(NmtWarning, match=f"20% of the de sentences have {what}, for example"):
        check_raw_text("x.tsv", [*sample[:40], *[("x", text)] * 10], ("en", "de"))
    check_raw_text("x.tsv", [*sample[:300], ("x", text)], ("en", "de"))
    healthy = (
        "H&M; R&D; AT&T",
        "▁▂▃ ▁",
        "# a ## b",
        "an @@x",
        "Hi Ġorġ",
        "Où ? Là ! « Oui » ; non : si",
    )
    check_raw_text("x.tsv", [("x", text) for text in healthy] * 5, ("en", "fr"))
