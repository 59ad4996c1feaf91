"""A picture of what each share of the way costs on general sentences and gains on the memory."""

from collections.abc import Mapping
from pathlib import Path

from nmt.extras.adapt.choice import GENERAL, MEMORY, Scores
from nmt.report.style import INK, save, settings

CHOSEN_COLOR = "#d1495b"
SIZE = (6.4, 4.4)  # inches
RESOLUTION = 110  # dots per inch


def draw(results: Mapping[float, Scores], chosen: float, max_loss: float, path: Path) -> None:
    """Draw the BLEU of both dev sets.

    Args:
        results: by share, with that of the base, 0.
        chosen: the share that was taken. max_loss: of the general score, that was allowed.

    Raises:
        DataError: the file cannot be written.
    """
    with settings():
        from matplotlib.figure import Figure

        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        points = [(share, results[share]) for share in sorted(results)]
        general, memory = ([scores[name] for _, scores in points] for name in (GENERAL, MEMORY))
        axes.plot(general, memory, color=INK, marker="o")
        axes.plot(*([results[chosen][name]] for name in (GENERAL, MEMORY)), "o", color=CHOSEN_COLOR)
        for share, scores in points:
            axes.annotate(
                f"{100 * share:g} %",
                (scores[GENERAL], scores[MEMORY]),
                xytext=(7, 4),
                textcoords="offset points",
                color=CHOSEN_COLOR if share == chosen else INK,
            )
        least = results[0.0][GENERAL] - max_loss
        axes.axvline(least, color=INK, linestyle=":", label="least general BLEU that was allowed")
        axes.set_xlabel("general, BLEU on dev")
        axes.set_ylabel("memory, BLEU on dev")
        axes.margins(0.12)
        axes.legend(frameon=False, loc="lower left")
        axes.set_title("the way from the run to the trained weights")
        save(figure, path, RESOLUTION, expand=False)
