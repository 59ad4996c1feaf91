"""How many sentences a text surely has, and can have."""

import pytest

from nmt.text.sentences import most_sentences, n_sentences


@pytest.mark.parametrize(
    ("text", "surely", "at_most"),
    [
        ("", 1, 0),
        ("The dog sleeps.", 1, 1),
        ("The dog sleeps. Why? It is late!", 3, 3),
        ("The dog sleeps. It is late", 2, 2),
        ("Dr. Smith met J. R. Hill and St. Peter.", 1, 5),
        ("Am 3. Mai kamen 2.5 Mio. an.", 1, 3),
        ("Well... I do not know.", 1, 2),
        ("Well... You know… They know.", 3, 3),
        ("It was in 1984. Two came. Anna is 5. Two left.", 3, 4),
        ("Plan B. Smith", 1, 2),
        ("the dog sleeps. it is late. really?", 3, 3),
        ("the dog... it is late, Tom.", 1, 2),
        ('"Stop!" Tom said.', 1, 2),
        ('"Stop!" "Why?"', 2, 2),
        ("¿Quién es? ¡Ven!", 2, 2),
        ("Он спит. Почему?", 2, 2),
        ("犬が眠る。なぜ？もう遅い。", 3, 3),
        ("「犬が眠る。」", 1, 1),
        ("The dog sleeps.I am here.", 2, 2),
        ("Why?Look!Anna is here;the dog too.", 3, 3),
        ("Mr.Hill of ASP.NET wrote to anna@Hill.Org.", 1, 1),
        ("The dog (it is old). Anna came.", 2, 2),
        ("1. Bread 2. Water", 2, 3),
        ("1) Bread 2) Water", 2, 2),
        ("Am 1. Mai und am 2. Juni", 1, 3),
        ("कुत्ता सोता है। देर हो गई।", 2, 2),
        ("الكلب نائم. لماذا؟", 2, 2),
    ],
)
def test_number_of_sentences(text: str, surely: int, at_most: int) -> None:
    assert (n_sentences(text), most_sentences(text)) == (surely, at_most)
