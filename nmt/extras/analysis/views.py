"""Translations as HTML: one in a notebook, and a page with the attention of many."""

from collections.abc import Iterable

from nmt.decoding.translator import Translation
from nmt.extras.analysis import html

# In a notebook, in pixels; the page scrolls where they are too small.
FRAME_HEIGHT, FIGURE_HEIGHT, ROW_HEIGHT, MAX_FRAME_HEIGHT = 160, 280, 24, 640


def notebook_view(translation: Translation) -> str:
    """Source, text and attention, for a notebook. It loads nothing."""
    cut = (
        ("the source was truncated", translation.src_cut),
        ("the output was truncated", not translation.complete),
    )
    facts = [f"log-probability {translation.log_prob:.2f}", *(fact for fact, holds in cut if holds)]
    fragments = [html.paragraphs([translation.source, ", ".join(facts)])]
    height = FRAME_HEIGHT
    if translation.has_attention:
        src_tokens, tokens = translation.attention_labels
        fragments.append(html.attention_figure(src_tokens, tokens, translation.attention))
        height += FIGURE_HEIGHT + ROW_HEIGHT * len(tokens)
    page = html.page(translation.text or "(empty)", [("", "\n".join(fragments))])
    return html.frame(page, min(height, MAX_FRAME_HEIGHT))


def attention_page(translations: Iterable[tuple[int, Translation]]) -> str:
    """A page with the attention of translations, each with its number."""
    sections = [
        (
            f"{number}  {translation.source}",
            html.attention_figure(
                *translation.attention_labels, translation.attention, translation.text
            ),
        )
        for number, translation in translations
    ]
    return html.page("Attention", sections)
