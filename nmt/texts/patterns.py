"""The table of what a translation must have as its source has it: placeholders, tags, addresses,
numbers and so on.

Translating keeps an item as it is, a comparison misses it, and the page without a server warns of
it: all read this table.
"""

import re
from dataclasses import dataclass

from nmt.texts.marked import Kind


@dataclass(frozen=True)
class ItemPattern:
    """A row of the table.

    Attributes:
        kind: placeholder, tag, entity, address, name, file, option, code, emoji, key or number.
        pattern: finds the items.
        is_compared: whether a comparison looks for it. What each pattern finds is compared by
            itself: a placeholder in an address counts in both.
        kept: how a translator of texts keeps it: an `item` and a `number` cover a word, an `empty`
            one stands between two words, and an `open` one is a tag; None leaves it to another row.
    """

    kind: str
    pattern: re.Pattern[str]
    is_compared: bool
    kept: Kind | None


def _kept(kind: str, kept: Kind, pattern: str) -> ItemPattern:
    """A row for what is kept; it is compared by other rows, or not at all."""
    return ItemPattern(kind, re.compile(pattern), is_compared=False, kept=kept)


def _compared(kind: str, pattern: str, kept: Kind | None = "item") -> ItemPattern:
    return ItemPattern(kind, re.compile(pattern), is_compared=True, kept=kept)


EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf©®™]"
MINUS = r"(?:(?<![\w.,:/'’)\]%-])[-−])?"  # of a negative number
_IN_NUMBER = ".,:/'’٬٫-"
ONE_NUMBER = rf"\d+(?:[{_IN_NUMBER}]\d+)*"
NUMBER = rf"\d+(?:[–{_IN_NUMBER}]\d+)*"  # or a range: 1999–2000
AT_NUMBER = r"(?<!\w)(?<!\d[.,:/'’–-])"  # before the first digit of one, or its sign
CURRENCY = "$¢€£¥₹₽₩₪₫₴₺₿"
UNIT = "(?:[kMGT]i?B|[kMG]?Hz|dB|kWh|mAh|dpi|px)"  # as good as the same in all languages
GROUPED = r"(?<!\d)\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\d)(?:[.,]\d+)?"  # 12 500
# What printf prints, after its number or name: flags, width, precision, size, type.
CONVERSION = r"[-+#0',]*[\d*]*(?:\.[\d*]+)?[hlqjztL]*[diouxXeEfFgGcrs@]"
# The messages of ICU with forms to choose from: {n, plural, one {a file} other {# files}}.
FORMS = r"\{\s*[\w.$-]+\s*,\s*(?:plural|select|selectordinal)\s*,"
_VALUE = r"\"[^\"<]*\"|'[^'<]*'|[^\s\"'<>/]+"
SUFFIX = r"(?:[a-z]{2,5}|[ch]|[a-z]{1,3}\d[a-z\d]?|7z)"  # of a file or host
PATH = r"(?:/[^\s<>\"'()\]]*(?<=[\w/]))?"  # on a host
_FLAGS = "checked|controls|disabled|download|hidden|multiple|open|readonly|required|selected"

PATTERNS = [
    # Tags; which of them close and which are empty comes later.
    _kept("tag", "open", r"</[A-Za-z\d][\w:.-]*\s*>"),
    _kept(
        "tag",
        "open",
        rf"<[A-Za-z\d][\w:.-]*(?:\s+(?:[\w:@.-]+\s*=\s*(?:{_VALUE})|(?:{_FLAGS})(?=[\s/>])))*"
        r"\s*/?>",
    ),
    # Emoji, comments, entities: with the spaces before them, or after the first.
    _kept(
        "emoji",
        "empty",
        rf"\A(?:{EMOJI}[\ufe0f\u200d]*)+\s+|(?<!\s)\s*(?:(?:{EMOJI}[\ufe0f\u200d]*)+|<!--.{{0,1000}}?-->"
        r"|&(?:amp|nbsp|quot|apos|[lg]t|hellip|[mn]dash|[lr][ad]quo|copy|reg|#\w+);)",
    ),
    _kept("placeholder", "break", r"(?<!\s)\s*\\[nrt](?![a-z])"),  # the end of a line as two signs
    _kept("placeholder", "empty", r"(?<=[a-z]{2})\$[A-Z][A-Z\d_]*\$"),  # "a link$LINK_END$"
    # {% if x %} and {{#if x}}, and their ends; others stand for words
    _kept(
        "placeholder",
        "empty",
        r"\{%-?\s*(?:end\w*|if|el\w+|for|block\w*|with|trans\w*|unless|case|when|plural|filter|set|comment)"
        r"\b.{0,1000}?%\}|\{\{~?(?:[#/^]|\s*else\b)[^{}]{0,1000}\}\}",
    ),
    # {n, plural, one {# dog} other {# dogs}}
    _kept("placeholder", "item", FORMS + r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"),
    _kept("placeholder", "item", rf"(?<![\d%])%(?:\d+\$)?{CONVERSION}\s%%"),  # "%d %%" prints "5 %"
    # %H:%M, Ctrl+S and -v: people translate some of them, a model loses them
    _kept(
        "placeholder",
        "item",
        r"(?<![\d%])(?<!\d\s)%[-_0^#]?[aAbBhHIjklmMpPRSTuUwWyYzZ](?![A-Za-z])",
    ),
    _kept(
        "key",
        "item",
        r"(?<!\w)(?:(?:Ctrl|CTRL|Control|Alt|ALT|AltGr|Shift|SHIFT|Cmd|Command|Option|Meta|Win|Super|Fn"
        r"|[⌘⌥⇧⌃])(?:\s?\+\s?|-)|[⌘⌥⇧⌃]+)+(?:(?:[A-Z][a-z]*|\d|F\d+)\b|[←↑→↓\[\]]|[-+=](?!\w))"
        r"|(?:<(?:Ctrl|Control|Primary|Alt|Shift|Super|Meta)>){1,4}(?:[A-Z][a-z]*|[a-z]|\d|F\d+)\b",
    ),
    _kept("option", "item", r"(?<![^\s(\[|])-[A-Za-z](?:\d+|(?<![AEIOUY]))(?![\w'’-])"),
    # phones, prices, degrees, points in time, versions, and numbers of three digits or more
    _kept("number", "number", r"(?<!\w)(?:\+\d[\d ()/-]{5,}|\(\d{2,5}\) ?\d[\d -]{3,})\d"),
    _kept("number", "number", rf"[-+−]?[{CURRENCY}§]\s?{NUMBER}"),
    _kept(
        "number",
        "number",
        rf"{AT_NUMBER}[-+−]?{NUMBER}\s?(?:[{CURRENCY}]|°(?:\s?[CFK]\b)?|[%‰](?![\w({{<$%])|{UNIT}\b)",
    ),
    # ≥18, >= 3.10, 18+, 1.5e-10, 1½, #12; 4 x 6, 0x1F
    _kept(
        "number",
        "number",
        rf"(?<![\w<>])(?:[≥≤±≈~>^]|<(?=\d\d)){NUMBER}(?![\w>])|[<>=!~]=\s?{NUMBER}|{AT_NUMBER}{NUMBER}\+(?![\w+])"
        rf"|{AT_NUMBER}{NUMBER}[eE][-+−]?\d+\b"
        r"|(?:(?<!\w)\d{1,9}\s?)?[¼½¾⅓⅔⅛]|(?<![\w&#])#\d+\b",
    ),
    _kept(
        "number",
        "number",
        rf"{AT_NUMBER}{NUMBER}(?:(?:\s?[x×]\s?{NUMBER})+|×)|(?<!\w)0[xX][\da-fA-F]+",
    ),
    _kept("number", "number", r"\d{4}-\d\d-\d\dT[\d:.]+\d(?:Z|[+-]\d\d:?\d\d)?"),
    _kept("number", "number", r"(?<!\d)\d+\.\d+\.\d+(?:[.+-]\w+)*"),
    _kept("number", "number", rf"{MINUS}(?:\d+(?:[.,:/'’–-]\d+)+|{GROUPED}|\d{{3,}})"),
    # {name}, {0:.2f}, ${x}, and {{ x }} inside its outer braces
    _compared("placeholder", r"\{\s*[^\s{},]*\s*\}"),
    _compared(
        "placeholder", r"\{%.{0,1000}?%\}|<%.{0,1000}?%>|<\?.{0,1000}?\?>|\$\([^()\s]{1,100}\)"
    ),
    # {{ name | upper }}, {{{name}}}, {0,number}, %{name}
    _compared("placeholder", r"[$#%@]?\{\{\{?[^{}]*\}?\}\}|\{\s*\w+\s*,[^{}]*\}|[$#%@]\{[^{}]*\}"),
    # $t(key), @:key, @.lower:(key); and the numbers of a form, ]1,Inf] or [2,*], before it
    _compared(
        "placeholder",
        r"\$t\([^()]*\)|@(?:\.\w+)?:(?:[\w.]*\w|\([\w.]+\))|(?m:^)[\[\]][-\d,*Inf]+[\[\]]",
    ),
    # [[name]] and __NAME__; :name and !link, but neither "Name: Tom" nor "Name:Tom"
    _compared(
        "placeholder", r"\[\[[^\[\]\n]{1,100}\]\]|(?<!\w)__[A-Za-z\d](?:\w*[A-Za-z\d])?__(?!\w)"
    ),
    _compared(
        "placeholder", r"(?<![\w:.,;!?)\]}@\u00a0\u202f]):[A-Za-z_]\w+:?|(?<![\w!?.])![a-z][\w-]+"
    ),
    # [NAME], %NAME%, %name%, and escapes as signs: \n, \u00e4
    _compared(
        "placeholder",
        r"\[[A-Z\d_]+\](?!\()|(?<![\d%])%[A-Za-z_]{2,100}%(?:\\[\w.-]*\w)*|\\[nrt](?![A-Za-z])"
        r"|\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|0\d\d)",
    ),
    # %s, %1$d, %(name)s, %<name>s, %1, %n; but "100%ig" and "5 %ige" are no placeholders
    _compared(
        "placeholder",
        rf"(?<![\d%])(?<!\d\s)%(?:\(\w+\)|<\w+>|\d+\$)?{CONVERSION}",
    ),
    # %name, @name@, ##name##, {'@'}
    _compared(
        "placeholder",
        rf"(?<![\w%])(?<!\d\s)%(?!{CONVERSION})[A-Za-z_][A-Za-z\d_]+(?![A-Za-z\d_]|%)",
    ),
    _compared(
        "placeholder", r"(?<![\w@#])(?:@{1,2}[A-Za-z_][\w.-]*@{1,2}|#{1,2}[A-Za-z_]\w*#{1,2})(?!\w)"
    ),
    _compared("placeholder", r"\{'[^'\n]{1,100}'\}"),
    _kept("placeholder", "item", rf"\[%{CONVERSION}\]|<%{CONVERSION}>|\[\{{\w*\}}\]|<\{{\w*\}}>"),
    _compared("placeholder", r"(?<=\d\s)%(?:\(\w+\)|\d+\$)?[sd@](?!\w)"),
    _compared("placeholder", r"(?<![\d%])(?<!\d\s)%L?(?:\d+|n)(?![\w$]|\.\d)"),
    # $name, $HOME/list, $NAME$
    _compared("placeholder", r"\$[A-Za-z][\w@]*\$|(?<!\w)\$[A-Za-z_][\w@]*(?:/[\w.-]*\w)*"),
    # <b>, </b>, <a href="...">, <x id="1"/>: their names and numbers
    _compared(
        "tag", r"</?[A-Za-z0-9][\w:.-]*(?:\s+id=\"[^\"<>]*\")?(?=[\s/>])(?=[^<>]*>)", kept=None
    ),
    # [b], [url=...] and their ends; but the "[b]" behind a word is a note
    _kept(
        "tag",
        "empty",
        r"(?<![\w.,;:!?\"'”’»)])\[(?:[bius]|(?:color|font|size|url)(?:=[^\s\[\]]+)?)\]",
    ),
    _compared("tag", r"\[/(?:[bius]|color|font|size|url)\]", "empty"),
    _compared("entity", r"&(?:[A-Za-z]\w*|#\w+);"),
    _compared("address", r"(?<!\w)\w+://(?:[^\s<>\"'()\]]|\([^\s<>\"'()]*\))*(?:[\w/]|(?<=\)))"),
    _compared("address", rf"\bwww\.[\w.-]+\w{PATH}"),
    _compared("address", r"(?<![\w.+-])(?:mailto:)?[\w.+-]+@[\w-]+\.[\w.-]*\w"),
    _compared("name", r"(?<![\w&/])[@#][A-Za-z_]\w*"),
    _kept("name", "item", r"(?<![\w&/])[@#][A-Za-z_]\w*(?:[-/]\w+)+"),  # @tom-b, @scope/name
    # example.org, list.txt, com.example.Name
    _compared("name", rf"(?<![\w.@/-])[\w-]{{2,}}(?:\.{SUFFIX})+(?!\.?\w)"),
    _compared(
        "name", rf"(?<![\w.@/-])(?:[\w-]+\.)+(?:com|dev|edu|gov|info|io|net|org)(?!\w|\.\w){PATH}"
    ),
    _compared(
        "name", r"(?<![\w.@/-])[a-z][A-Za-z\d_]+(?:\.[A-Za-z][A-Za-z\d_]+){2,}(?!\.?[A-Za-z\d_])"
    ),
    # getName; but the two words of "dog" and "The" may have nothing but a mark between them
    _compared(
        "name", r"(?<![\w.\\])(?!kHz|kWh|mAh)[a-z]+(?:[A-Z][a-z\d]+)+(?![A-Za-z\d_])", kept=None
    ),
    # list(), .list, ~/.list, Foo::Bar, localhost:80
    _kept("name", "item", r"(?<![\w.])(?:\w+\.)*\w+\(\)|(?<![^\s\"'“„«»‘(])\.[a-z][\w-]*\w"),
    _compared("name", r"(?<![\w.])(?:\w+(?:::\w+)+|localhost:\d+)"),
    _kept("name", "item", r"(?<![\w/])[A-Z]/[A-Z](?![\w/])"),  # I/O
    # H&M, C++, C#, .NET
    _compared("name", r"(?<![\w&])[A-Z][A-Za-z]*&[A-Z][A-Za-z]*(?![\w;&])"),
    _compared("name", r"(?<![\w.+#])(?:[A-Z](?:\+\+|#)|\.NET)(?![\w+#])"),
    # DOMAIN\Name, NT AUTHORITY\SYSTEM; but \n, \r and \t may be signs for the end of a line
    _compared(
        "name",
        r"(?<![\w\\-])(?:(?:[A-Z]{2,} )?[A-Z][A-Z\d_-]+(?:\\(?![nrt](?:[A-Z]|\b))[\w.$-]*[\w$])+"
        r"|[A-Za-z][\w-]*(?:\\(?![nrt])[A-Za-z][\w.$-]*[\w$])+)",
    ),
    # *.txt, data_*.csv, list/**, old-*
    _compared(
        "file",
        r"(?<![\w*./~-])!?[\w./~-]*(?:\*\.[\w*]|[/_-]\*)(?:[\w./*-]*[\w*])?",
    ),
    # C:\list.txt, \\server\list
    _compared(
        "file",
        r"(?<!\w)[A-Za-z]:\\(?:[\w.-]+(?: [A-Z][\w.()-]*)*\\)*[^\s<>\"]*\w"
        r"|(?<![\w\\])\\\\[\w.$-]+(?:\\[\w.$-]*[\w$])+",
    ),
    _compared("file", r"(?<![^\s\"'“„«»‘(])~?/\w[\w.-]*/(?:[\w./-]*[\w/])?"),
    _compared("file", r"(?<=[\"'“„«»‘])~?/\w[\w.-]*(?![\w/])"),
    _compared("file", r"(?<![^\s\"'“„«»‘(])~/[\w./-]*\w"),
    # ../list, a/list.txt; but not and/or
    _compared(
        "file",
        rf"(?<![\w./~:-])(?:(?:\.\.?/)+\w(?:[\w./-]*\w)?|(?:[\w.-]+/)+[\w-]+\.{SUFFIX}\b)",
    ),
    _compared("option", r"(?<![\w-])--[a-z][\w-]*(?:=[\w.]+)?"),
    _compared("code", r"`{1,3}[^`\s](?:[^`\n]*[^`\s])?`{1,3}"),
    # XR-200-B, F-16, UUIDs, max_size; but the underscore of "Pa_ste" and "e_xport" marks a key
    _compared(
        "name",
        r"(?<![\w-])(?=[A-Z\d-]*[A-Z])(?=[A-Z-]*\d)[A-Z\d]+(?:-[A-Z\d]+)+"
        r"(?!\w|-[A-Z\d]+\b)|(?<![\w-])[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?![\w-])",
    ),
    # AB7, v4l2, 12b; but neither 90s nor 5ms
    _compared(
        "name",
        r"(?<!\w)(?<!\d\.)(?:[A-Za-z]+\d[A-Za-z\d]*|\d+[A-Za-z](?<![aeghkms]))(?!\w|\.\d)",
    ),
    _compared(
        "name",
        r"(?<!\w)(?![A-Z][a-z]*_[a-z]+\b)_*[A-Za-z]"
        r"(?:[A-Za-z\d]+_[^\W_]|[A-Za-z\d]*_[^\W_]+_)\w+",
    ),
    _compared("emoji", "[\U0001f000-\U0001faff\u2600-\u27bf]", kept=None),
]
# Takes the next value of a program, so their order stays; %(name)s, %1$s and {0} may move.
NEXT_VALUE = re.compile(rf"%{CONVERSION}|\{{(?::[^\s{{}}]*)?\}}")
