"""A report as one image: charts of the values, images of the runs, and verdicts on the paper's claims."""

import math
from collections.abc import Iterator, Mapping, Sequence

from PIL import Image, ImageDraw

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.experiments.report import Chart, Column
from setsup.experiments.report.boxes import boxes
from setsup.experiments.report.cells import CITED
from setsup.experiments.report.filled import Curve, FilledReport, Line
from setsup.experiments.report.heat import find_cells, heat
from setsup.experiments.report.report import reference_words
from setsup.reports.bar_charts import bars
from setsup.reports.curve_charts import curves
from setsup.reports.page import INK, SOFT
from setsup.reports.text_layout import Lines, Style, draw_text, line_height, wrap_text

__all__ = ["draw_report", "report_charts"]

_WIDTH = 2200
"""Pixels within which charts and images are placed side by side."""
_PART = (_WIDTH - 60) // 2
"""Maximum width of an image of a run."""
_MARGIN, _GAP = 30, 30
_MOST = 6
"""Images of the runs of a line that are shown; the others are counted."""

_TITLES: tuple[Style, Style] = ((34, INK), (22, SOFT))
_TEXTS: tuple[Style, Style] = ((22, INK), (20, SOFT))


def draw_report(filled: FilledReport) -> Image.Image:
    """Plot a report.

    Bars show values, with one chart for each way in which runs differ from the paper's setting; boxes over re-splits,
    maps, curves and images of the runs follow, then what was not run, and the verdict on each claim.

    Parameters
    ----------
    filled : FilledReport
        What to plot.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When an image of a run cannot be read.

    Examples
    --------
    >>> from setsup.experiments.report.registry import find_report, report_on
    >>> draw_report(report_on(find_report("abc/fig4a"))).mode
    'RGB'

    """
    check_arguments(draw_report, locals(), DataError)
    blocks = [_lines(f"{filled.report.name}: {filled.report.shows}\n{filled.report.source}", _TITLES)]
    blocks += _side_by_side(_charts(filled))
    for line in filled.lines:
        blocks += _pictures(line, many=len(filled.report.rows) > 1)
    if filled.report.cited:
        blocks.append(_lines("\n".join(_cited(filled)), _TEXTS))
    if filled.commands:
        blocks.append(_lines(f"{filled.not_run}: {', '.join(filled.commands)}", _TEXTS))
    if unmeasured := [
        ", ".join([line.row.label, *line.differs]) for line in filled.lines if line.run and not line.seeds
    ]:
        blocks.append(_lines(f"not measured: {'; '.join(unmeasured)}", _TEXTS))
    for verdict in filled.verdicts:
        blocks.append(_lines("\n".join(verdict.lines), _TEXTS))
    for compared in filled.compared:
        if compared.lines:
            blocks.append(_lines("\n".join(compared.lines), _TEXTS))
    width = max(block.width for block in blocks) + 2 * _MARGIN
    height = sum(block.height + _GAP for block in blocks) - _GAP + 2 * _MARGIN
    sheet = Image.new("RGB", (width, height), "white")
    top = _MARGIN
    for block in blocks:
        sheet.paste(block, (_MARGIN, top))
        top += block.height + _GAP
    return sheet


def report_charts(filled: FilledReport) -> list[Image.Image]:
    """Plots of a report, and images of its runs with a caption, each by itself."""
    many = len(filled.report.rows) > 1
    return [*_charts(filled), *(tile for line in filled.lines for tile in _tiles(line, many=many))]


def _charts(filled: FilledReport) -> list[Image.Image]:
    return [*_bar_charts(filled), *_box_charts(filled), *_heat_charts(filled), *_curve_charts(filled)]


def _cited(filled: FilledReport) -> Iterator[str]:
    """Numbers that the paper took from others, a line for each method."""
    yield f"{CITED}:"
    names = {column.key: column.name for column in filled.columns}
    for label, values in filled.report.cited.items():
        listed = (
            f"{name} {reference_words(values[key], filled.report.digits)}"
            for key, name in names.items()
            if key in values
        )
        yield f"{label}: {', '.join(listed)}"


def _bar_charts(filled: FilledReport) -> list[Image.Image]:
    charts = []
    parts = _parts(filled)
    for differs in dict.fromkeys(line.differs for line in filled.lines):
        lines = [line for line in filled.lines if line.differs == differs]
        for (title, unit), columns in parts.items():
            series: dict[str, dict[str, tuple[float, float | None]]] = {}
            counted = _seeds(lines, filled)
            for line in lines:
                name = line.row.label if counted else f"{line.row.label}, n = {len(line.seeds)}"
                series[name] = {
                    column.name: (line.values[column.key].mean, line.values[column.key].sd)
                    for column in columns
                    if column.key in line.values and math.isfinite(line.values[column.key].mean)
                }
            if any(series.values()):
                labels = {label for held in series.values() for label in held}
                named = {line.row.label: name for line, name in zip(lines, series, strict=True) if series[name]}
                heads = [title, counted, *differs]
                charts.append(
                    bars(
                        {name: held for name, held in series.items() if held},
                        unit=unit,
                        ceilings={
                            column.name: column.ceiling
                            for column in columns
                            if column.ceiling is not None and column.name in labels
                        },
                        references=_references(filled, named, columns, labels),
                        title=", ".join(filter(None, heads)),
                    )
                )
    return charts


def _parts(filled: FilledReport) -> Mapping[tuple[str, str], list[Column]]:
    """Columns by chart: those of an evaluation and a unit; values of curves are in the charts of these."""
    several = len(filled.report.evaluations) > 1
    parts: dict[tuple[str, str], list[Column]] = {}
    for column in filled.columns:
        if column.at is None and (filled.report.heat is None or column.key != filled.report.heat.key):
            title = column.key.partition(": ")[0] if several else ""
            parts.setdefault((title, column.unit or filled.report.unit), []).append(column)
    return parts


def _references(
    filled: FilledReport, named: Mapping[str, str], columns: Sequence[Column], labels: set[str]
) -> dict[str, dict[str, dict[str, tuple[float, float | None]]]]:
    """Numbers to compare with by source, series and label; those in words are in the table only."""
    numbers_by_source: dict[str, dict[str, dict[str, tuple[float, float | None]]]] = {}
    for who, values in filled.report.references.items():
        for row, series in named.items():
            numbers = {
                column.name: value if isinstance(value, tuple) else (float(value), None)
                for column in columns
                if column.name in labels and not isinstance(value := values.get((row, column.key), ""), str)
            }
            if numbers:
                numbers_by_source.setdefault(who, {})[series] = numbers
    return numbers_by_source


def _seeds(lines: Sequence[Line], filled: FilledReport) -> str:
    counts = {(len(line.seeds), filled.seeds.get(line.row.preset, 1)) for line in lines if line.seeds}
    counted = {f"{measured} of {asked} seeds" for measured, asked in counts}
    return counted.pop() if len(counted) == 1 else ""


def _box_charts(filled: FilledReport) -> list[Image.Image]:
    """A box for each row over re-splits."""
    charts = []
    for compared in filled.compared:
        reference = compared.resplits.reference
        starred = f"; * differs from {reference}" if compared.stars else ""
        resplits = max(map(len, compared.accuracies.values()))
        heads = [f"{resplits:,} re-splits, means over seeds{starred}", compared.on]
        unit = filled.report.unit or compared.resplits.key
        names = {
            label: f"{label}{compared.stars.get(label, '')}\nn = {compared.seeds[label]}"
            for label in compared.accuracies
        }
        samples = {names[label]: accuracies for label, accuracies in compared.accuracies.items()}
        charts.append(boxes(samples, unit=unit, title=", ".join(filter(None, heads))))
    return charts


def _heat_charts(filled: FilledReport) -> list[Image.Image]:
    """A map for each row that has one, with the same colours for the same values."""
    maps = find_cells(filled)
    heat_map, report = filled.report.heat, filled.report
    known = [
        value for cells in maps.values() for row in cells.values() for value in row.values() if math.isfinite(value)
    ]
    if heat_map is None or not known:
        return []
    names = {column.key: column.name for column in filled.columns}
    how = {"x_label": report.x_label, "y_label": names[heat_map.key]}
    limits = min(known), max(known)
    return [heat(cells, limits, title=f"{label}: {heat_map.label}", **how) for label, cells in maps.items()]


def _curve_charts(filled: FilledReport) -> list[Image.Image]:
    report = filled.report
    if report.resplits is not None:
        return []  # numbers of re-splits have no order
    if report.charts:
        return [chart for compared in report.charts for chart in _compared_curves(filled, compared)]
    labels = {column.key: column.name for column in filled.columns}
    ceilings = {column.name: column.ceiling for column in filled.columns if column.ceiling is not None}
    charts = []
    for line in filled.lines:
        known, bands = _known_curves({labels.get(key, key): curve for key, curve in line.curves.items()}, report.log_x)
        if known:
            charts.append(
                curves(
                    known,
                    log_x=report.log_x,
                    x_label=report.x_label,
                    y_label=report.y_label or report.unit,
                    bands=bands,
                    references={name: ceiling for name, ceiling in ceilings.items() if name in known},
                    title=", ".join(filter(None, [line.row.label, _seeds([line], filled), *line.differs])),
                )
            )
    return charts


def _compared_curves(filled: FilledReport, chart: Chart) -> list[Image.Image]:
    """Curves of one name of all rows: one chart for each way in which runs differ from the paper's setting."""
    charts = []
    for differs in dict.fromkeys(line.differs for line in filled.lines):
        lines = [line for line in filled.lines if line.differs == differs and chart.curve in line.curves]
        counted = _seeds(lines, filled)
        names = [line.row.label if counted else f"{line.row.label}, n = {len(line.seeds)}" for line in lines]
        of_lines = {name: line.curves[chart.curve] for name, line in zip(names, lines, strict=True)}
        known, bands = _known_curves(of_lines, chart.log_x)
        if known:
            title = ", ".join(filter(None, [chart.label, counted, *differs]))
            charts.append(
                curves(
                    known,
                    log_x=chart.log_x,
                    x_label=chart.x_label,
                    y_label=chart.label,
                    bands=bands,
                    title=title,
                )
            )
    return charts


def _known_curves(
    given: Mapping[str, Curve], log_x: bool
) -> tuple[dict[str, tuple[list[float], list[float]]], dict[str, tuple[list[float], list[float]]]]:
    """Curves where their heights are known, and their bands of one standard deviation."""
    shown, bands = {}, {}
    for name, (x, mean, sd) in given.items():
        known = [index for index, height in enumerate(mean) if math.isfinite(height)]
        if log_x:
            known = [index for index in known if x[index] > 0]
        if known:
            shown[name] = ([x[index] for index in known], [mean[index] for index in known])
        if known and sd is not None:
            low = [mean[index] - sd[index] for index in known]
            bands[name] = (low, [mean[index] + sd[index] for index in known])
    return shown, bands


def _pictures(line: Line, many: bool) -> list[Image.Image]:
    blocks = _side_by_side(_tiles(line, many))
    if len(line.pictures) > _MOST:
        blocks.append(_lines(f"and {len(line.pictures) - _MOST} more images in the run folders", _TEXTS))
    return blocks


def _tiles(line: Line, many: bool) -> list[Image.Image]:
    tiles = []
    for seed, path in line.pictures[:_MOST]:
        try:
            with Image.open(path) as picture:
                shown = picture.convert("RGB")
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error}); create the picture again with `setsup eval`") from error
        if shown.width > _PART:
            shown = shown.resize((_PART, round(shown.height * _PART / shown.width)), Image.Resampling.LANCZOS)
        named = [line.row.label] if many else []
        caption = _lines(", ".join([*named, f"seed {seed}", path.stem, *line.differs]), _TEXTS, max(shown.width, 400))
        tile = Image.new("RGB", (max(shown.width, caption.width), shown.height + caption.height), "white")
        tile.paste(caption, (0, 0))
        tile.paste(shown, (0, caption.height))
        tiles.append(tile)
    return tiles


def _side_by_side(images: Sequence[Image.Image]) -> list[Image.Image]:
    rows: list[list[Image.Image]] = []
    for image in images:
        if rows and sum(other.width + _GAP for other in rows[-1]) + image.width <= _WIDTH:
            rows[-1].append(image)
        else:
            rows.append([image])
    sheets = []
    for row in rows:
        width = sum(image.width + _GAP for image in row) - _GAP
        sheets.append(Image.new("RGB", (width, max(image.height for image in row)), "white"))
        left = 0
        for image in row:
            sheets[-1].paste(image, (left, 0))
            left += image.width + _GAP
    return sheets


def _lines(text: str, styles: tuple[Style, Style], width: int = 1500) -> Image.Image:
    lines: Lines = wrap_text(text, width, styles)
    block = Image.new("RGB", (width, sum(line_height(style[0]) for _, style in lines) + 6), "white")
    top = 0
    for line, style in lines:
        draw_text(ImageDraw.Draw(block), 0, top, line, style)
        top += line_height(style[0])
    return block
