"""Where the pairs of two languages are: those with English on manythings.org, and all others in the
exports of tatoeba.org, from which they come.
"""

from difflib import get_close_matches
from typing import Any

from nmt.config.parts import choices
from nmt.data.formats import Languages
from nmt.errors import DataError
from nmt.extras.init.languages import english_names
from nmt.extras.init.measurement import Measures
from nmt.texts.sentences import writes_spaces

WITH_ENGLISH = "https://www.manythings.org/anki/{}-eng.zip"
EXPORTS = "https://downloads.tatoeba.org/exports/per_language"
# The code of each language, and that of both sites.
CODES = """
    af afr am amh ar ara az aze be bel bg bul bn ben ca cat cs ces da dan de deu el ell en eng
    eo epo es spa et est eu eus fa pes fi fin fr fra ga gle gl glg he heb hi hin hr hrv hu hun
    hy hye id ind is isl it ita ja jpn ka kat kk kaz ko kor la lat lb ltz lt lit lv lvs mk mkd
    mr mar ms zsm nb nob nl nld nn nno no nob pl pol pt por ro ron ru rus sk slk sl slv sq sqi
    sr srp sv swe sw swh ta tam te tel th tha tl tgl tr tur tt tat uk ukr ur urd uz uzb vi vie
    zh cmn
"""
# With more than 50,000 pairs with English, and less than 5,000; the others are between.
MANY = "de eo es fi fr he hu it ja lt mk mr nl pl pt ru tr uk"
FEW = "am az bn ca et eu fa ga gl hi hr hy ka kk la lb lv ms nn sk sl sq sw ta te th tt ur uz"
CHARACTERS = 35  # of a sentence
N_DIFFERENT = {"ja": 2_500, "zh": 3_000}  # characters in the pairs


def site_codes() -> dict[str, str]:
    """The code of each language on both sites."""
    words = CODES.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def source_of(languages: Languages) -> dict[str, Any]:
    """The source of a configuration, which downloads the pairs.

    Raises:
        DataError: a language is not known; the message has those with similar codes or names. Or
            both codes mean one language there.
    """
    src, tgt = map(_site_code, languages)
    if src == tgt:
        raise DataError(
            f"--direction {'-'.join(languages)}: both are {src} on tatoeba.org; name pairs of your "
            "own with --data"
        )
    if "en" in languages:
        other = tgt if languages[0] == "en" else src
        return {"format": "manythings", "url": WITH_ENGLISH.format(other)}
    names = f"{src}/{src}-{tgt}_links", f"{src}/{src}_sentences", f"{tgt}/{tgt}_sentences"
    return {
        "format": "links",
        "url": [f"{EXPORTS}/{name}.tsv.bz2" for name in names],
        "columns": {languages[0]: 1, languages[1]: 2},
    }


def _site_code(language: str) -> str:
    codes = site_codes()
    if language in codes:
        return codes[language]
    written = {word: code for code, site_code in codes.items() for word in (code, site_code)}
    written |= {english_names().get(code, code).lower(): code for code in codes}
    near = dict.fromkeys(written[word] for word in get_close_matches(language, written, 4, 0.5))
    listing = [f"{code} {english_names().get(code, '')}".strip() for code in near] or codes
    raise DataError(
        f"--direction: tatoeba.org's pairs of {language!r} are not known; perhaps "
        f"{choices(listing)}; name pairs of your own with --data"
    )


def expected(name: str, languages: Languages) -> Measures:
    """What the pairs of two languages will be like, roughly, before they are downloaded."""
    n_pairs = 20_000
    if "en" in languages and not {*languages}.isdisjoint(MANY.split()):
        n_pairs = 200_000
    elif not {*languages}.isdisjoint(FEW.split()):
        n_pairs = 3_000
    src, tgt = (not writes_spaces(language) for language in languages)
    return Measures(
        name,
        n_pairs,
        n_read=n_pairs,
        dropped={},
        is_all=False,
        n_held_out=min(2000, n_pairs // 15),
        n_characters=CHARACTERS * n_pairs,
        n_different=max(N_DIFFERENT.get(language, 100) for language in languages),
        has_no_spaces=(src, tgt),
        texts={},
        suspicious={},
    )
