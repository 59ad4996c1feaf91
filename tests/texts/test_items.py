"""What stays as it is in a translation, each as a whole."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from nmt.config.schema import DecodingConfig, ModelConfig, TokenizerConfig
from nmt.decoding.torch_model import TorchModel
from nmt.decoding.translator import Translator
from nmt.model.seq2seq import Seq2Seq
from nmt.text.tokenizers import SIDES, load_tokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.texts.items import kinds_of_words, names, signs, without_edges
from nmt.texts.marked import Marked
from tests.texts.fakes import kind_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Set 5 px or 1 d, Ctrl-S, localhost:8", [
            "number 5 px", "item Ctrl-S", "item localhost:8"
        ]),
        ("😀 The dog[a] is here.[b] dog[s]", ["empty 😀 ", "note [a]", "note [b]"]),
        ("A dog is here, isn't it? 5-6 of 12 are.", []),
        ("Hello {name}, %d%% of %s", ["item {name}", "item %d%%", "item %s"]),
        ("{0}% (%s) #{id}", ["item {0}%", "item %s", "item #{id}"]),
        ("file_%d.txt {a}/{b} v{x}", ["item file_%d.txt", "item {a}/{b}", "item v{x}"]),
        ("{{ user.name | upper }} ${HOME}", ["item {{ user.name | upper }}", "item ${HOME}"]),
        ("{n, plural, one {# dog} other {}}s", ["item {n, plural, one {# dog} other {}}s"]),
        ("{when, date, long}", ["item {when, date, long}"]),
        ("See https://a.org/x?y=1. Go", ["item https://a.org/x?y=1"]),
        ("XR-200-B COVID-19 T-34 max_size", [
            "item XR-200-B", "item COVID-19", "item T-34", "item max_size"
        ]),
        ("Pa_ste, B_rightness, i_n and outpu_t", []),
        ("err_code g_io_channel", ["item err_code", "item g_io_channel"]),
        ("`git pull`, it's a dog's", ["item `git pull`"]),
        ("3,450.75 on 2024-05-17, 10:30", ["number 3,450.75", "number 2024-05-17", "number 10:30"]),
        ("250GB v2.3.1-rc.2 12 500 km", ["number 250GB", "number v2.3.1-rc.2", "number 12 500"]),
        ("the 1990s, 100th, 256x256", ["number 1990", "number 100", "number 256x256"]),
        ("$5.00 and 99.9%", ["number $5.00", "number 99.9%"]),
        ('<a href="x.org">a</a><br/>', ['open <a href="x.org">', "close </a>", "break <br/>"]),
        ("<input disabled> <0>x</0>", ["empty <input disabled>", "open <0>", "close </0>"]),
        ("a < b and c > d, x<y and z>w, <3", []),
        ("A dog <!-- a note --> sleeps.", ["empty  <!-- a note -->"]),
        ("Hi 😀👍! a &amp; b.\\n", ["empty  😀👍", "empty  &amp;", "break \\n"]),
        ("München &uuml; M&uuml;n", ["item &uuml;", "item M&uuml;n"]),
        ("5 %s, 5 %ige", ["item %s"]),
        (
            "]1,Inf] Read $t(menu.file) or @:common.name.",
            ["item ]1,Inf]", "item $t(menu.file)", "item @:common.name"],
        ),
        ("%H:%M, %d-%b-%Y", ["item %H:%M", "item %d-%b-%Y"]),
        ("Ctrl+Shift+Z, Alt-F4 or F5", ["item Ctrl+Shift+Z", "item Alt-F4", "item F5"]),
        ("-v, --all [-h]", ["item -v", "item --all", "item -h"]),
        ("go -I am", []),
        ("15,50 €, -5 °C, § 7, © 90°", [
            "number 15,50 €", "number -5 °C", "number § 7", "empty  ©", "number 90°"
        ]),
        ("the 5th of 20th, 5ms, in the 90s, 10 km/h and/or a/b", []),
        ("a/b/list.txt ../a '/tmp' ./x_1", [
            "item a/b/list.txt", "item ../a", "item /tmp", "item ./x_1"
        ]),
        ("+49 30 1234567 or (555) 123-4567.", ["number +49 30 1234567", "number (555) 123-4567"]),
        ("AB7, v4l2: 12b", ["item AB7", "item v4l2", "item 12b"]),
        ("at a.b2next.com.", ["item a.b2next.com"]),
        (":name, $NAME$ and __NAME__", ["item :name", "item $NAME$", "item __NAME__"]),
        ("[[name]] {{{name}}} !link", ["item [[name]]", "item {{{name}}}", "item !link"]),
        ("Note: it is 3 p.m. :-) Go! Now", []),
        ("%3$'d of %n", ["item %3$'d", "item %n"]),
        ("*.txt, H&M and C++", ["item *.txt", "item H&M", "item C++"]),
        ("CORP\\tom NT AUTHORITY\\SYSTEM", ["item CORP\\tom", "item NT AUTHORITY\\SYSTEM"]),
        ("from -250 to 1 000", ["number -250", "number 1 000"]),
        ("7% of 50‰, 10 kB, -$50, ₹1,00,000", [
            "number 7%", "number 50‰", "number 10 kB", "number -$50", "number ₹1,00,000"
        ]),
        ("≥18, 1.5e-10, 1½ of #12", ["number ≥18", "number 1.5e-10", "number 1½", "number #12"]),
        ("3 m³, 9.81 m/s² but dogs²", ["item 3 m³", "item 9.81 m/s²", "note ²"]),
        ("a link$LINK_END$ v$VERSION$", ["empty $LINK_END$", "item v$VERSION$"]),
        ("%name% %<name>s <%= name %> $(date) %5.2f %I:%M %p", [
            "item %name%", "item %<name>s", "item <%= name %>", "item $(date)", "item %5.2f",
            "item %I:%M", "item %p"
        ]),
        ("Ctrl + S, CTRL+SHIFT+S, ⌘S or Alt+←", [
            "item Ctrl + S", "item CTRL+SHIFT+S", "item ⌘S", "item Alt+←"
        ]),
        ("os.exit() of A::B on localhost:80", ["item os.exit()", "item A::B", "item localhost:80"]),
        (".list ~/.list $HOME/list %APPDATA%\\Tom I/O", [
            "item .list", "item ~/.list", "item $HOME/list", "item %APPDATA%\\Tom", "item I/O"
        ]),
        ("C:\\My Files\\a.txt logs/*.log, old-* list/**", [
            "item C:\\My Files\\a.txt", "item logs/*.log", "item old-*", "item list/**"
        ]),
        ("github.com/a/b www.a.org/b?c=1 https://a.org/b_(c)", [
            "item github.com/a/b", "item www.a.org/b?c=1", "item https://a.org/b_(c)"
        ]),
        ("(https://a.org/b) mailto:me@a.org", ["item https://a.org/b", "item mailto:me@a.org"]),
        ("a song.mp3, main.c of /usr/lib/ in src/a.h", [
            "item song.mp3", "item main.c", "item /usr/lib/", "item src/a.h"
        ]),
        ("com.example.Name @scope/dog @tom-b", [
            "item com.example.Name", "item @scope/dog", "item @tom-b"
        ]),
        ("Python>=3.10, < or >= 3.10, 18+ ^1.2", [
            "number Python>=3.10", "number >= 3.10", "number 18+", "number ^1.2"
        ]),
        ("1999–2000, 10:00–12:00, 5–10%, $5–$10", [
            "number 1999–2000", "number 10:00–12:00", "number 5–10%", "number $5–$10"
        ]),
        ("from 2–3 to 5–10", []),
        ("4 x 6 cm, 4×6, 3×, 0x1F, 5¢", [
            "number 4 x 6", "number 4×6", "number 3×", "number 0x1F", "number 5¢"
        ]),
        ("12345678-90ab-cdef-1234-567890abcdef", ["item 12345678-90ab-cdef-1234-567890abcdef"]),
        ("Ctrl++, Ctrl+-, AltGr+E, ⌘+S, -O2", [
            "item Ctrl++", "item Ctrl+-", "item AltGr+E", "item ⌘+S", "item -O2"
        ]),
        ("@name@ ##name## %name {'@'} [[First name]]", [
            "item @name@", "item ##name##", "item %name", "item {'@'}", "item [[First name]]"
        ]),
        ("$%d, %d€, [%s] and <{0}>", ["item $%d", "item %d€", "item [%s]", "item <{0}>"]),
        ("<?= $name ?> \\u00e4 ``a b``", ["item <?= $name ?>", "item \\u00e4", "item ``a b``"]),
        ("{% if x %}A dog{% endif %}", ["empty {% if x %}", "empty {% endif %}"]),
        ("{{#if x}}A dog{{else}}a cat{{/if}}", [
            "empty {{#if x}}", "empty {{else}}", "empty {{/if}}"
        ]),
        ("The [b]dog[/b] of dog[b] [url=a.org]is[/url]", [
            "empty [b]", "empty [/b]", "note [b]", "empty [url=a.org]", "empty [/url]"
        ]),
        ("<Ctrl><Shift>S or <Alt>q", ["item <Ctrl><Shift>S", "item <Alt>q"]),
        ("a dog†", ["note †"]),
    ],
)  # fmt: skip
def test_signs(text: str, expected: list[str]) -> None:
    """Also in a part of the text that has nothing else."""
    assert [f"{each.kind} {each.written}" for each in signs(text)] == expected
    words = text.split()
    for part in (*words, *map(" ".join, pairwise(words))):
        assert signs(part) == signs(part, [re.compile("(?!)")])


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("... and a dog", "and a dog"),
        ('"... and a dog"', 'and a dog"'),
        ("→ A dog", "A dog"),
        ("— A dog", "A dog"),
        ("+ A dog", "A dog"),
        ("(1) A dog", "A dog"),
        ("(iv) A dog", "A dog"),
        ("[ ] A dog", "A dog"),
        ("1.2 A dog", "A dog"),
        ("1.2 dogs", "1.2 dogs"),
        ("0.5 Liter", "0.5 Liter"),
        ("1. – A dog", "– A dog"),
        ('"A dog..."', '"A dog..."'),
    ],
)
def test_what_stays_at_the_start(text: str, rest: str) -> None:
    found = without_edges(Marked(text), ordinals=False)
    assert (found.text, found.written) == (rest, text)


def test_further_items() -> None:
    """A part of a word protects the word."""
    found = signs("the dog Rex sleeps", [re.compile("og [A-Z][a-z]+|e*")])
    assert [(each.position, each.end) for each in found] == [(0, 3), (4, 11), (12, 18)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My singer is Kylie Minogue, who was at Yale's.", ["Kylie Minogue", "Yale"]),
        ("Skiers like the hills", []),
        ("Skiers Yale is here", ["Skiers Yale"]),
        ("Kylie Minogue", []),
        ("Visit Yale", ["Yale"]),
        ("Export As GIMP File, Yale", ["GIMP"]),  # a title
        ("“GIMP” is a program", ["GIMP"]),
        ("McCoy sleeps", ["McCoy"]),
        ("Roosevelt was here", ["Roosevelt"]),
        ("Roosevelt", ["Roosevelt"]),
        ("the dog sees yale and kylie", []),
    ],
)
def test_names(text: str, expected: Sequence[str]) -> None:
    assert [text[start:end] for start, end in names(text, kind_of)] == expected


def test_what_the_lexicon_knows_of_a_word() -> None:
    """The tokens are letters; "ab" is always copied, "ba" is not."""
    letters = Vocabulary([*"abcABC"], [0] + [1] * 6)
    model = Seq2Seq(
        ModelConfig.model_validate({"lexical_bias": 2, "lexical_words": 3}),
        len(letters),
        len(letters),
    )
    sources = torch.tensor([letters.ids(word) for word in ("ab", "ba")])
    tokens = letters.tokens(range(len(letters)))
    bias = model.eval().lexical_bias
    assert bias is not None
    bias.words.fill(tokens, lowercase=True)
    keys = bias.words(sources)[1][:, 0]
    copied = torch.tensor([letters.ids("Ab"), letters.ids("cB")])
    bias.fill_words(tokens, keys, copied, torch.tensor([[0.9, 0.8], [0.5, 0.5]]))
    tokenizers = [
        load_tokenizer(TokenizerConfig(kind="characters"), "en", side, Path()) for side in SIDES
    ]
    translator = Translator(
        TorchModel(model),
        tokenizers=(tokenizers[0], tokenizers[1]),
        vocabularies=(letters, letters),
        options=DecodingConfig(),
    )
    kind_of = kinds_of_words(translator)
    assert kind_of is not None
    assert [*map(kind_of, ["Ab", "Ba", "A", "Cab"])] == ["copied", "other", "other", "new"]
    assert translator.model.lexicon is not None
    translator.model.lexicon.word_keys[-1] = 5  # full: the training data may have had more words
    kind_of = kinds_of_words(translator)
    assert kind_of is not None
    assert [*map(kind_of, ["Ab", "Cab"])] == ["copied", "other"]
