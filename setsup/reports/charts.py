"""What all charts share: axes, legends, lettering and the way to an image.

Matplotlib is used through its objects, and every property that shows is given: neither ``pyplot``, nor a backend, nor
the user's own style has a say in how a chart looks.
"""

import inspect
import math
import textwrap
from collections.abc import Callable, Container, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PIL import Image

from setsup.errors import require_modules
from setsup.files import written
from setsup.reports.page import INK, SOFT
from setsup.reports.text_layout import font, plain, typeset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "canvas",
    "chart",
    "complete",
    "drawn",
    "families",
    "few_ticks",
    "is_finite",
    "legend",
    "letters",
    "number",
    "shorten",
    "style_axes",
]

DOTS = 140  # an inch
TITLE, LABEL, TICK = 11.0, 9.5, 8.5  # points of 1/72 inch
_FALLBACK = "DejaVu Sans"  # comes with matplotlib, and has the letters that the font of sheets lacks
EDGE = "#9aa5b1"
_GRID = "#e6eaee"
_LONGEST = 32  # letters of a name in a legend
_ENTRIES = 24  # below each other

Drawing = TypeVar("Drawing", bound=Callable[..., Image.Image])

_PARAMETERS = {
    "title": "title : str\n    Above the chart; may be empty.\n",
    "x_label": "x_label, y_label : str\n    At the axes, with the unit; may be empty.\n",
}


def chart(function: Drawing) -> Drawing:
    """Complete the docstring of a function that draws a chart."""
    if function.__doc__:  # python -OO leaves none
        function.__doc__ = complete(function.__doc__, inspect.signature(function).parameters)
    return function


def complete(docstring: str, parameters: Container[str]) -> str:
    """Say what holds for all charts: what titles and labels are, that an image is returned, and what is needed."""
    described, _, rest = inspect.cleandoc(docstring).partition("\nRaises\n------\n")
    errors, _, examples = rest.partition("\nExamples\n")
    shared = "".join(paragraph for name, paragraph in _PARAMETERS.items() if name in parameters)
    return (
        f"{described}{shared}\nReturns\n-------\nRGB image\n\n"
        f"Raises\n------\n{errors}SetsupError\n    When matplotlib is not installed.\n\nExamples\n{examples}"
    )


@cache
def families() -> tuple[str, ...]:
    """Names of the charts' fonts, in the order in which they are asked for a letter: first that of all sheets.

    Pillow holds its font in memory, and matplotlib reads fonts from files: it is written to matplotlib's cache.
    """
    from matplotlib import get_cachedir
    from matplotlib.font_manager import fontManager

    family = font(12).getname()[0]
    data = getattr(font(12), "font_bytes", None)
    if not family or not data:
        return (_FALLBACK,)
    path = Path(get_cachedir()) / f"setsup-{family.lower()}-{len(data)}.ttf"
    if not path.is_file():
        with written(path) as part:
            part.write_bytes(data)
    fontManager.addfont(str(path))
    return family, _FALLBACK


def canvas(width: float, height: float, title: str) -> "Figure":
    """An empty chart."""
    require_modules("charts need", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS, facecolor="white")
    figure.set_layout_engine("constrained", w_pad=0.09, h_pad=0.09, wspace=0.03, hspace=0.03)
    if title:
        lines = textwrap.wrap(letters(title), max(20, int(width * 11)))
        figure.suptitle("\n".join(lines), fontsize=TITLE, color=INK)
    FigureCanvasAgg(figure)  # makes itself the figure's
    return figure


def style_axes(axes: "Axes", x_label: str, y_label: str, grid: str = "") -> None:
    """Give axes their colours, labels and ticks; ``grid`` is ``"y"``, ``"both"`` or nothing."""
    from matplotlib.ticker import NullLocator

    axes.set_facecolor("white")
    for side, spine in axes.spines.items():
        spine.set(visible=side in ("left", "bottom"), color=EDGE, linewidth=0.8)
    ticks: dict[str, Any] = {
        "labelsize": TICK,
        "labelcolor": SOFT,
        "color": EDGE,
        "length": 3.0,
        "width": 0.8,
        "direction": "out",
    }
    axes.tick_params(which="major", **ticks, pad=3, labelfontfamily=list(families()), top=False, right=False)
    axes.set_axisbelow(True)
    axes.grid(False)
    if grid:
        axes.grid(True, axis="y" if grid == "y" else "both", color=_GRID, linewidth=0.8, linestyle="-", alpha=1.0)
    axes.set_xlabel(letters(x_label), fontsize=LABEL, color=INK, labelpad=4)
    axes.set_ylabel(letters(y_label), fontsize=LABEL, color=INK, labelpad=4)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: number(value))
        axis.set_minor_locator(NullLocator())


def few_ticks(axes: "Axes") -> None:
    """Leave a few ticks on both axes: enough to tell the scale."""
    from matplotlib.ticker import MaxNLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))


def legend(axes: "Axes", handles: Sequence[Any], title: str = "") -> None:
    """Put a legend to the right of the axes, where it covers nothing."""
    shown = axes.legend(
        handles=handles,
        title=letters(title) or None,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        ncols=-(-len(handles) // _ENTRIES),
        fontsize=TICK,
        title_fontsize=TICK,
        labelcolor=INK,
        frameon=False,
        handlelength=1.4,
        handletextpad=0.5,
        labelspacing=0.35,
        columnspacing=1.0,
        borderaxespad=0.0,
        alignment="left",
    )
    shown.get_title().set_color(SOFT)


def drawn(figure: "Figure") -> Image.Image:
    """Turn a chart into an RGB image."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        # names are written as they are: $ begins no formula
        text.set(fontfamily=list(families()), fontweight="normal", fontstyle="normal", parse_math=False, usetex=False)
    on: Any = figure.canvas
    on.draw()
    return Image.fromarray(np.asarray(on.buffer_rgba())).convert("RGB")


def is_finite(value: Any) -> bool:
    """Whether a value is a number, and finite."""
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)


def number(value: float) -> str:
    """Write a number for a tick: ``100,000``, ``0.25``, ``−3``."""
    return f"{0.0 if value == 0 else value:,.6g}".replace("-", "−")


def shorten(text: str, most: int = _LONGEST) -> str:
    """Make one line of a name, cut in the middle where it is long: both ends of a path tell something."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - most // 2 - 1]}…{line[-(most // 2) :]}"


def letters(text: str) -> str:
    """Spell a text with the letters of the charts' fonts, its numbers as sheets have them."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    known = get_font(findfont(FontProperties(family=_FALLBACK))).get_charmap()
    spelled = (letter if ord(letter) in known else _latin(letter) for letter in typeset(text))
    return "".join(spelled)


def _latin(letter: str) -> str:
    plain_letter = plain(letter)
    return plain_letter if plain_letter.isascii() else "?"
