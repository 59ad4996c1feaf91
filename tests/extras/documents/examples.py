"""A file of each format, and what it becomes when its texts are written in capitals."""


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """Nothing else changes."""
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


STRING = '<resources><string name="a">{}</string></resources>'
RESOURCES = r"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE resources [
  <!ENTITY app "Our App">
]>
<!-- Don't change this. -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="hello">Hello, <b>world</b>! Don\'t &amp; won\'t</string>
    <string name="welcome">  Welcome to &app;, <xliff:g id="user">%1$s</xliff:g>.
        Have a nice day\n  </string>
    <string name="own" translatable="false">Stay</string>
    <string name="quoted">"It's   quoted"</string>
    <string name="reference">@string/hello</string>
    <string name="signs">\u0020and \u00e4 \@ home\?</string>
    <string name="page"><![CDATA[See <a href="https://example.org">it</a>, it\'s <br>new]]></string>
    <string name="escaped">&lt;b>Bold&lt;/b> text</string>
    <string name="key">pref_dark_mode</string>
    <plurals name="songs">
        <item quantity="one">%d song</item>
        <item quantity="other">%d songs</item>
    </plurals>
    <string-array name="days" translatable="false"><item>Monday</item></string-array>
    <string-array name="dogs"><item>big</item></string-array>
    <style name="s"><item name="a">No text</item></style>
    <string name="empty"/>
</resources>
"""
RESOURCES_IN_CAPITALS = replaced(
    RESOURCES,
    (r"Hello, <b>world</b>! Don\'t &amp; won\'t", r"HELLO, <b>WORLD</b>! DON\'T &amp; WON\'T"),
    (
        '>  Welcome to &app;, <xliff:g id="user">%1$s</xliff:g>.\n        Have a nice day',
        '>  WELCOME TO &app;, <xliff:g id="user">%1$s</xliff:g>. HAVE A NICE DAY',
    ),
    ('"It\'s   quoted"', r'"IT\'S   QUOTED"'),
    (r"and \u00e4 \@ home\?", "AND Ä @ HOME?"),
    (">it</a>, it\\'s <br>new", ">IT</a>, IT\\'S <br>NEW"),
    ("[CDATA[See", "[CDATA[SEE"),
    ("&lt;b>Bold&lt;/b> text", "&lt;B&gt;BOLD&lt;/B&gt; TEXT"),
    (">%d song<", ">%D SONG<"),
    (">%d songs<", ">%D SONGS<"),
    ("<item>big", "<item>BIG"),
)
PAGE = """\
<!DOCTYPE html>
<HTML lang="en">
<head><title>Bread &amp; butter</title>
<meta name="description" content="All about &quot;good&quot; bread">
<meta name="viewport" content="width=device-width">
<style>p > a { color: red }</style>
<script>if (a < b) document.write("<p>not a text</p>");</script>
</head>
<body class="wide">
<!-- not a text -->
<h1><a id="top"></a>Welcome to <em>our</em> shop</h1>
<p>Hello <b>dear <i>guest</i></b>, type <code>bake --now</code> first.<br>
Then   look at <img src="x.png" alt="A loaf"> the <a href="Top" title='It is "up"'>top</a>.
<p>This has no end, {{ user.name }}. {% if late %}It is late.{% else %}Good day.{% endif %}
<UL><LI>One loaf<LI>Two <B>loaves</B></UL>
<pre>not a text</pre>
<p translate="no">not a text</p>
<p>From <span class="notranslate">Mill Brothers</span>; R&D, 3 < 4 &lt; 5.</p>
<input type=submit value=Send><input type="text" placeholder="Your name" value="not a text">
<a href="x"><svg><title>not a text</title></svg> Home</a>
<table><tr><td>A cell</td><td>12</td></tr></table>
<p><strong>All of it strong</strong></p>
<p><i class="icon"></i> Save <u>it</p><p>No start</i> here</p>
<textarea>not a text</textarea>
</body></HTML>
"""
LINKS = '<p>See <a title="Home" href="Home">it</a> and <a title="End" href="Home">that</a>.</p>'
PAGE_IN_CAPITALS = """\
<!DOCTYPE html>
<HTML lang="en">
<head><title>BREAD &amp; BUTTER</title>
<meta name="description" content="ALL ABOUT &quot;GOOD&quot; BREAD">
<meta name="viewport" content="width=device-width">
<style>p > a { color: red }</style>
<script>if (a < b) document.write("<p>not a text</p>");</script>
</head>
<body class="wide">
<!-- not a text -->
<h1><a id="top"></a>WELCOME TO <em>OUR</em> SHOP</h1>
<p>HELLO <b>DEAR <i>GUEST</i></b>, TYPE <code>bake --now</code> FIRST.<br> THEN LOOK AT \
<img src="x.png" alt="A LOAF"> THE <a href="Top" title='IT IS "UP"'>TOP</a>.
<p>THIS HAS NO END, {{ user.name }}. {% if late %}IT IS LATE.{% else %}GOOD DAY.{% endif %}
<UL><LI>ONE LOAF<LI>TWO <B>LOAVES</B></UL>
<pre>not a text</pre>
<p translate="no">not a text</p>
<p>FROM <span class="notranslate">Mill Brothers</span>; R&amp;D, 3 &lt; 4 &lt; 5.</p>
<input type=submit value="SEND"><input type="text" placeholder="YOUR NAME" value="not a text">
<a href="x"><svg><title>not a text</title></svg> HOME</a>
<table><tr><td>A CELL</td><td>12</td></tr></table>
<p><strong>ALL OF IT STRONG</strong></p>
<p><i class="icon"></i> SAVE <u>IT</p><p>NO START</i> HERE</p>
<textarea>not a text</textarea>
</body></HTML>
"""
MESSAGES = r"""{
  "title": "Hello \"world\"",
  "nested": {"list": ["One", "btn-primary", "Two words", {"b": "Sign in"}], "locale": "en_US"},
  "color": "#ffcc00", "url": "https://example.org", "file": "img/a.png", "date": "DD.MM.YYYY",
  "number": 12, "none": null, "on": "true",
  "time": "HH:mm", "state": "isOpen", "mail": "tom@example.org",
  "sides": "one car | {n} cars", "numbers": "{0} none|{1} one|]1,Inf] many cars",
  "html": "Read <a href=\"\/x\">this<\/a> {a|b}",
  "@title": {"description": "Stay please"},
  "twice": "First", "twice": "Second", "": "Empty key"
}
"""
MESSAGES_IN_CAPITALS = replaced(
    MESSAGES,
    (r"Hello \"world\"", r"HELLO \"WORLD\""),
    ('"One"', '"ONE"'),
    ("Two words", "TWO WORDS"),
    ("Sign in", "SIGN IN"),
    ("one car | {n} cars", "ONE CAR | {N} CARS"),
    ("{0} none|{1} one|]1,Inf] many cars", "{0} NONE|{1} ONE|]1,INF] MANY CARS"),
    (r"Read <a href=\"\/x\">this<\/a> {a|b}", r"READ <A HREF=\"\/X\">THIS<\/A> {A|B}"),
    ("First", "FIRST"),
    ("Second", "SECOND"),
    ("Empty key", "EMPTY KEY"),
)
HARD_BREAK = "  "  # at the end of a line
README = r"""---
title: not a text
---
# My *small* bakery #

[![build](https://x.org/b.svg)](https://x.org) [![not a text](a.png)](b)

A shop with **bread** and `butter --now`, see [the list](https://x.org/a_b "not a text") or
[Guide] and [more][guide] and [Guide][]. This   snake_case is 2 * 3 \* 4 & &lt;tag&gt; `x
y` end.\
After a break{0}
and _one_ more <kbd>C</kbd>+<kbd>V</kbd> <https://a.org> https://b.org/x_y_z.

1. First item
   goes on
2. Second ~~old~~ new

- [ ] A task with ![not a text](x.png "t") inside
- [x] Done :tada:

> Somebody said this and
> went on[^1]
> > to say

| Name | Meaning of it |
|------|:-------------:|
| `a\|b` | Bread \| butter and **salt** |
| foo | |

A title
in two lines
============

    not a text

```python
print("not a text")
```

<div align="center">
  <b>not a text</b>
</div>

[guide]: https://x.org/guide "not a text"

[^1]: A note below.

> [!NOTE]
> Useful words.

A<br>break <!-- not a text --> and a <span class="x">part</span>.
""".replace("{0}", HARD_BREAK)
README_IN_CAPITALS = r"""---
title: not a text
---
# MY *SMALL* BAKERY #

[![build](https://x.org/b.svg)](https://x.org) [![not a text](a.png)](b)

A SHOP WITH **BREAD** AND `butter --now`, SEE [THE LIST](https://x.org/a_b "not a text") OR
[GUIDE][Guide] AND [MORE][guide] AND [GUIDE][Guide]. THIS SNAKE_CASE
IS 2 \* 3 \* 4 & \<TAG> `x y` END.\
AFTER A BREAK{0}
AND _ONE_ MORE <kbd>C</kbd>+<kbd>V</kbd> <https://a.org> https://b.org/x_y_z.

1. FIRST ITEM
   GOES ON
2. SECOND ~~OLD~~ NEW

- [ ] A TASK WITH ![not a text](x.png "t") INSIDE
- [x] DONE :tada:

> SOMEBODY SAID THIS AND
> WENT ON[^1]
> > TO SAY

| NAME | MEANING OF IT |
|------|:-------------:|
| `a\|b` | BREAD \| BUTTER AND **SALT** |
| FOO | |

A TITLE IN
TWO LINES
============

    not a text

```python
print("not a text")
```

<div align="center">
  <b>not a text</b>
</div>

[guide]: https://x.org/guide "not a text"

[^1]: A NOTE BELOW.

> [!NOTE]
> USEFUL WORDS.

A<br> BREAK <!-- not a text --> AND A <span class="x">PART</span>.
""".replace("{0}", HARD_BREAK)
BUNDLE = r"""# comment = stays
! this, too
title = Open the file
key\ with\ space : It''s {0} files
long=This is \
     a long text \
     of three lines
signs=Gr\u00fc\u00dfe \ud83d\ude00 an alle
lone=Can't open {0}
empty=
without
path=C:\\dir\\file
color=#ff0000
lead=\ leading space
lines=First line\nSecond line
menu=&File
    indented    value of words
"""
BUNDLE_IN_CAPITALS = replaced(
    BUNDLE,
    ("Open the file", "OPEN THE FILE"),
    ("It''s {0} files", "IT''S {0} FILES"),
    ("This is \\\n     a long text \\\n     of three lines", "THIS IS A LONG TEXT OF THREE LINES"),
    (r"Gr\u00fc\u00dfe \ud83d\ude00 an alle", r"GR\u00dcSSE \ud83d\ude00 AN ALLE"),
    ("Can't open", "CAN'T OPEN"),
    ("leading space", "LEADING SPACE"),
    (r"First line\nSecond line", r"FIRST LINE\nSECOND LINE"),
    ("&File", "&FILE"),
    ("value of words", "VALUE OF WORDS"),
)
SUBRIP = """\
1
00:00:01,000 --> 00:00:02,500
Hello there,
my friend.

2
00:00:03,000 --> 00:00:04,000
- Who are you?
- <i>I am Tom.</i>

3
00:00:05,000 --> 00:00:06,000
{\\an8}JOHN: Run!

4
00:00:07,000 --> 00:00:08,000
♪ la la la ♪

5
00:00:09,000 --> 00:00:09,500
[door slams]

6
00:00:10,000 --> 00:00:11,000

7
00:00:12,000 --> 00:00:13,000
<i>Two lines</i>
<i>of text</i>
8
00:00:14,000 --> 00:00:15,000
No blank line before, none after"""
WEB = """\
WEBVTT - a title

NOTE
Do not touch

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.000 align:start line:10%
<v Bob>Hello and welcome
<v Ann>Hi <c.loud>there</c>

NOTE the end

00:03.000 --> 00:04.000
Text <00:03.500>later
"""
SUBRIP_IN_CAPITALS = replaced(
    SUBRIP,
    ("Hello there,\nmy friend.", "HELLO THERE,\nMY FRIEND."),
    ("- Who are you?\n- <i>I am Tom.</i>", "- WHO ARE YOU?\n- <i>I AM TOM.</i>"),
    ("Run!", "RUN!"),
    ("la la la", "LA LA LA"),
    ("door slams", "DOOR SLAMS"),
    ("Two lines", "TWO LINES"),
    ("of text", "OF TEXT"),
    ("No blank line before, none after", "NO BLANK LINE BEFORE, NONE AFTER"),
)
WEB_IN_CAPITALS = replaced(
    WEB,
    ("Hello and welcome", "HELLO AND WELCOME"),
    ("Hi <c.loud>there", "HI <c.loud>THERE"),
    ("Text <00:03.500>later", "TEXT <00:03.500>LATER"),
)
PO_HEADER = """msgid ""
msgstr ""
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""
CATALOG = f"""# Our own catalog
{PO_HEADER}#. Shown in the menu
#: main.c:10
msgctxt "menu"
msgid "Open the file"
msgstr ""

#: main.c:12
#, c-format
#| msgid "Delete"
msgid "Delete %s?\\n"
msgstr ""

#| msgid "Hello"
msgid ""
"A long message which stands on several lines of the file, since it has more than "
"eighty characters.\\n"
"Its second line has \\"quotes\\" and a tab:\\t."
msgstr ""

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, fuzzy
msgid "Save"
msgstr "Sichern"

msgid "Close"
msgstr "Schließen"

#, fuzzy
#~ msgid "Old"
#~ msgstr "Alt"
"""
CATALOG_IN_CAPITALS = replaced(
    CATALOG,
    (
        '#: main.c:10\nmsgctxt "menu"\nmsgid "Open the file"\nmsgstr ""\n',
        '#: main.c:10\n#, fuzzy\nmsgctxt "menu"\nmsgid "Open the file"\nmsgstr "OPEN THE FILE"\n',
    ),
    (
        '#, c-format\n#| msgid "Delete"\nmsgid "Delete %s?\\n"\nmsgstr ""\n',
        '#, fuzzy, c-format\n#| msgid "Delete"\nmsgid "Delete %s?\\n"\nmsgstr "DELETE %S?\\n"\n',
    ),
    ('#| msgid "Hello"\n', '#, fuzzy\n#| msgid "Hello"\n'),
    (
        'a tab:\\t."\nmsgstr ""\n',
        'a tab:\\t."\nmsgstr ""\n'
        '"A LONG MESSAGE WHICH STANDS ON SEVERAL LINES OF THE FILE, SINCE IT HAS MORE THAN EIGHTY '
        'CHARACTERS.\\n"\n"ITS SECOND LINE HAS \\"QUOTES\\" AND A TAB:\\t."\n',
    ),
    ('msgid "one file"', '#, fuzzy\nmsgid "one file"'),
    ('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "ONE FILE"\nmsgstr[1] "%D FILES"'),
)
XLIFF_START = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <file source-language="en" target-language="de" datatype="plaintext" original="app">
    <body>
"""
XLIFF_END = "    </body>\n  </file>\n</xliff>\n"
SEGMENTS = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
  <file id="f1">
    <unit id="u1">
      <notes><note>A note</note></notes>
      <segment id="s1">
        <source>Click <pc id="1">here</pc> or <ph id="2"/>.</source>
      </segment>
      <ignorable><source> </source></ignorable>
      <segment state="initial"><source>I like tea.</source><target>I like tea.</target></segment>
      <segment state="final"><source>Yes</source><target>Ja</target></segment>
    </unit>
    <unit id="u2" translate="no"><segment><source>Stay</source></segment></unit>
  </file>
</xliff>
"""
SEGMENTS_IN_CAPITALS = replaced(
    SEGMENTS,
    ('<segment id="s1">', '<segment id="s1" state="translated">'),
    (
        '<ph id="2"/>.</source>\n',
        '<ph id="2"/>.</source>\n'
        '        <target>CLICK <pc id="1">HERE</pc> OR <ph id="2"/>.</target>\n',
    ),
    ('state="initial"', 'state="translated"'),
    ("<target>I like tea.", "<target>I LIKE TEA."),
)


def unit(content: str, attributes: str = "") -> str:
    """A file of XLIFF 1.2."""
    return f'{XLIFF_START}      <trans-unit id="a"{attributes}>{content}</trans-unit>\n{XLIFF_END}'


def cue(*lines: str) -> str:
    """A file of one subtitle."""
    return "\n".join(["1\n00:00:01,000 --> 00:00:02,000", *lines, ""])


TEMPLATE = (
    '#, fuzzy\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=CHARSET\\n"\n'
    '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
    'msgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
)


def message(source: str, target: str = "") -> str:
    """A catalog of gettext."""
    mark = "#, fuzzy\n" if target else ""
    return f'{PO_HEADER}{mark}msgid "{source}"\nmsgstr "{target}"\n'
