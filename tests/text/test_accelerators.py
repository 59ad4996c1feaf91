"""Marks of accelerators: what is one, what only looks like one, and where a translation gets it."""

import pytest

from nmt.text.accelerators import (
    Words,
    find_accelerators,
    split_accelerator,
    with_accelerator,
    without_accelerators,
)

MENU = "_Cut _Paste _Undo _Redo _Quit the window"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_Paint", ("Paint", "_P")),
        ("E_rase all", ("Erase all", "_r")),
        ("O_penGL", ("OpenGL", "_p")),
        ("Paint &twice…", ("Paint twice…", "&t")),
        ("Sharp (_slowly)", ("Sharp (slowly)", "_s")),
        ("_X.25", ("X.25", "_X")),
        ("_1:1", ("1:1", "_1")),
        ("Cut && _glue", ("Cut & glue", "_g")),
        ("P_économe", ("Péconome", "_é")),
        ("ال_لوحة", ("اللوحة", "_ل")),
        ("塗る(_P)...", ("塗る...", "_P")),
        ("塗る (&P):", ("塗る:", "&P")),
        ("描画（_3）", ("描画", "_3")),
        ("칠하기(_P)", ("칠하기", "_P")),
        ("塗る(_P) 消す(_E)", ("塗る 消す", "_P")),
        ("塗る&消す", ("塗る&消す", "")),
        ("paint_box", ("paint_box", "")),
        ("Los_Altos", ("Los_Altos", "")),
        ("KP_Tab", ("KP_Tab", "")),
        ("BOX_KIND", ("BOX_KIND", "")),
        ("SDL_paint", ("SDL_paint", "")),
        ("g_box_open()", ("g_box_open()", "")),
        ("__box__ or _box_", ("__box__ or _box_", "")),
        ("B&B", ("B&B", "")),
        ("salt & pepper, &amp;, &#39;", ("salt & pepper, &amp;, &#39;", "")),
        ("%(box_name)s {_box}", ("%(box_name)s {_box}", "")),
        ("a=1&b=2 /A_box ~_box --a_box", ("a=1&b=2 /A_box ~_box --a_box", "")),
        ("http://example.org/?Box&lid", ("http://example.org/?Box&lid", "")),
        ("säule&lt;", ("säule&lt;", "")),
        ("ИМЯ_ФАЙЛА", ("ИМЯ_ФАЙЛА", "")),
        ("<b id='_x'>bold</b>", ("<b id='_x'>bold</b>", "")),
        ("_one and _two", ("_one and _two", "")),
        ("_ alone", ("_ alone", "")),
        (f"_Long {'x' * 500}", (f"_Long {'x' * 500}", "")),
    ],
)
def test_of_a_text_alone(text: str, expected: tuple[str, str]) -> None:
    assert split_accelerator(text) == expected


@pytest.mark.parametrize(
    ("content", "text", "expected"),
    [
        ("the window", "Close the win_dow", "Close the window"),
        ("the window", "Close the she_lf", "Close the she_lf"),
        (MENU, "Close the she_lf", "Close the shelf"),
        (MENU, "HS_V", "HSV"),
        (MENU, "1:1_6", "1:16"),
        (MENU, "Open BOX_KIND", "Open BOX_KIND"),
        (MENU, "Failed, box_kind: %d", "Failed, box_kind: %d"),
        (MENU, f"Set box_kind {'to one ' * 5}", f"Set box_kind {'to one ' * 5}"),
        (f"{MENU}; a box of a kind", "Open box_kind", "Open box_kind"),
        (MENU.replace("_", "&amp;"), "Close the she&lf", "Close the shelf"),
    ],
)
def test_the_words_of_the_file_tell_marks_from_names(
    content: str, text: str, expected: str
) -> None:
    assert split_accelerator(text, Words(content))[0] == expected


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("_Paint", "P_eindre"), ("Paint", "Peindre")),
        (("Paint the she_lf", "Das _Regal streichen"), ("Paint the shelf", "Das Regal streichen")),
        (("Paint the she_lf", "peindre l'éta_gère"), ("Paint the shelf", "peindre l'étagère")),
        (("Paint B_G", "_Grund färben"), ("Paint BG", "Grund färben")),
        (("_RGB", "RGB(_R)"), ("RGB", "RGB")),
        (("Choice (_A)", "選択(_A)"), ("Choice (A)", "選択(A)")),
        (("Choice (A)", "選択(A)"), ("Choice (A)", "選択(A)")),
        (("_Paint box_kind", "box_kindを塗る(_P)"), ("Paint box_kind", "box_kindを塗る")),
        (("Wrong box_kind", "Falsche box_kind"), ("Wrong box_kind", "Falsche box_kind")),
        (("Paint the she_lf", "Regal"), ("Paint the she_lf", "Regal")),
        (("Paint", "_Streichen"), ("Paint", "Streichen")),
        (("_Paint", "_Strei_chen"), ("Paint", "Streichen")),
        (("The B&B", "Das B&B"), ("The B&B", "Das B&B")),
    ],
)
def test_leave_both_sides_of_a_pair(pair: tuple[str, str], expected: tuple[str, str]) -> None:
    assert without_accelerators(*pair) == expected


def test_found_in_a_pair() -> None:
    found = find_accelerators("Paint the she_lf", "_Re_gal")
    assert [[(each.place, each.key) for each in side] for side in found] == [
        [(13, "l")],
        [(0, "R"), (3, "g")],
    ]


@pytest.mark.parametrize(
    ("text", "accelerator", "expected"),
    [
        ("Alles streichen", "_S", "Alles _streichen"),
        ("Alles streichen", "&x", "&Alles streichen"),
        ("%1$s: <b>ok</b> {name}", "_n", "%1$s: <b>_ok</b> {name}"),
        ("box_kind zeigen", "_b", "box_kind _zeigen"),
        ("%s-Liste", "_L", "%s-_Liste"),
        ("100 %", "_p", "_100 %"),
        ("... %s", "_p", "... %s"),
        ("ارسم اللوحة", "_P", "_ارسم اللوحة"),
        ("塗る", "_p", "塗る(_P)"),
        ("塗る...", "&p", "塗る(&P)..."),
        ("塗る：", "_p", "塗る(_P)："),
        ("塗る(P)…", "_p", "塗る(_P)…"),
        ("Auswahl (A)", "_a", "Auswahl (_A)"),
        ("Streichen\tCtrl+P", "&P", "&Streichen\tCtrl+P"),
        ("Zumachen (Ctrl+W)", "_W", "_Zumachen (Ctrl+W)"),
        ("塗る\tCtrl+P", "&p", "塗る(&P)\tCtrl+P"),
    ],
)
def test_a_translation_gets_it(text: str, accelerator: str, expected: str) -> None:
    assert with_accelerator(text, accelerator) == expected
