"""What files say of their own language: where their translations are written, it is theirs."""

import re
from collections.abc import Iterator

from nmt.data.formats import Languages
from nmt.extras.documents.document import Edit, Skipped

CODE = re.compile(r"([A-Za-z]{2,3}(?![A-Za-z]))?(?:[-_@.].*)?")  # "de", "pt_BR", "sr@latin", ""
RIGHT_TO_LEFT = re.compile(
    "ar|ara|arc|ckb|dv|fa|fas|he|heb|ks|nqo|pes|prs|ps|sd|syr|ug|ur|yi"
).fullmatch
# Header of PO -> the languages with these plural forms.
RULES = {
    "nplurals=1; plural=0;": "bo dz id ja jpn jv km ko lo ms my su th vi yo zh zho",
    "nplurals=2; plural=(n != 1);": (
        "af an ast az bg ca da de el en eo es et eu fi fo fur fy gl ha he hu ia it ka kk kl ku ky "
        "lb ml mn mr nb ne nl nn no om ps pt rm sc scn so sq st sv sw ta te tk tn tr ts ug ur uz xh"
    ),
    "nplurals=2; plural=(n > 1);": "ak am as bh bn fa fil fr gu hi hy kab kn ln mg oc pa ti wa zu",
    "nplurals=2; plural=(n % 10 != 1 || n % 100 == 11);": "is mk",
    "nplurals=3; plural=(n % 10 == 1 && n % 100 != 11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n % 10 == 1 && n % 100 != 11 ? 0 : n % 10 >= 2 && (n % 100 < 10 || "
    "n % 100 >= 20) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n % 10 == 1 && n % 100 != 11 ? 0 : n % 10 >= 2 && n % 10 <= 4 && "
    "(n % 100 < 10 || n % 100 >= 20) ? 1 : 2);": "be bs hr ru sh sr uk",
    "nplurals=3; plural=(n == 1 ? 0 : n % 10 >= 2 && n % 10 <= 4 && (n % 100 < 10 || "
    "n % 100 >= 20) ? 1 : 2);": "pl",
    "nplurals=3; plural=(n == 1 ? 0 : n >= 2 && n <= 4 ? 1 : 2);": "cs sk",
    "nplurals=3; plural=(n == 1 ? 0 : n == 0 || (n % 100 > 0 && n % 100 < 20) ? 1 : 2);": "mo ro",
    "nplurals=3; plural=(n == 1 ? 0 : n == 2 ? 1 : 2);": "ga se",
    "nplurals=4; plural=(n % 100 == 1 ? 0 : n % 100 == 2 ? 1 : n % 100 == 3 || n % 100 == 4 ? 2 : "
    "3);": "dsb hsb sl",
    "nplurals=4; plural=(n == 1 || n == 11 ? 0 : n == 2 || n == 12 ? 1 : n > 2 && n < 20 ? 2 : "
    "3);": "gd",
    "nplurals=4; plural=(n == 1 ? 0 : n == 2 ? 1 : n != 8 && n != 11 ? 2 : 3);": "cy",
    "nplurals=4; plural=(n == 1 ? 0 : n == 0 || (n % 100 > 1 && n % 100 < 11) ? 1 : "
    "n % 100 > 10 && n % 100 < 20 ? 2 : 3);": "mt",
    "nplurals=6; plural=(n == 0 ? 0 : n == 1 ? 1 : n == 2 ? 2 : n % 100 >= 3 && n % 100 <= 10 ? 3 "
    ": n % 100 >= 11 ? 4 : 5);": "ar",
}
PLURAL_FORMS = {code: rule for rule, codes in RULES.items() for code in codes.split()}


def label(
    edit: Edit, said: str, languages: Languages, *, stays: bool = False, is_whole: bool = True
) -> Iterator[Edit | Skipped]:
    """What becomes of the name of a language: a remark if the run does not translate it.

    Args:
        edit: puts the target language there. said: the name now, or "".
        languages: of source and target.
        stays: it is the name of the language of the source, in the translation as well.
        is_whole: whether it is the language of the whole file, where another one is remarkable.
    """
    src, tgt = languages
    found = CODE.fullmatch(said.strip())  # not "{{ language }}", which is filled in later
    code = found and (found[1] or "").lower()
    if code in ("", src) and not stays:
        yield edit
    elif code and is_whole and code != (src if stays else tgt):
        reason = f"names the language {said.strip()}, but the run translates {src} to {tgt}"
        yield Skipped(edit[0], f"{reason}; use another run, or correct the file")
