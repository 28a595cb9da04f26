"""Sparklines: a series as a small drawing made by the server, with a text for those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 100.0, 24.0


def spark_html(values: Sequence[float | None], label: str, state: str = "") -> SafeString:
    """``values``: in the order of time, evenly spaced, None where nothing is known. ``state``: need or bad, if it is.

    ``label`` says what the drawing shows: with the last value and the largest, as a sentence.
    """
    runs = _runs(values)
    if not runs:
        return format_html('<span class="soft" role="img" aria-label="{}">–</span>', label)
    lines = format_html_join("", '<path class="spark-line" d="{}"/>', ((_path(run),) for run in runs))
    areas = format_html_join("", '<path class="spark-area" d="{}"/>', ((_area(run),) for run in runs))
    return format_html(
        '<svg class="spark{}" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label="{}">{}{}</svg>',
        f" spark-{state}" if state in ("need", "bad") else "",
        label,
        areas,
        lines,
    )


def _runs(values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Points of the drawing, in pieces without a gap."""
    top = max((v for v in values if v is not None), default=0) or 1
    step = WIDTH / max(1, len(values) - 1)
    runs: list[list[tuple[float, float]]] = [[]]
    for number, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((round(number * step, 2), round(HEIGHT - 1 - max(0.0, value) / top * (HEIGHT - 2), 2)))
    return [run for run in runs if run]


def _path(run: list[tuple[float, float]]) -> str:
    if len(run) == 1:
        return f"M{run[0][0]},{run[0][1]}h1"
    return "M" + "L".join(f"{x},{y}" for x, y in run)


def _area(run: list[tuple[float, float]]) -> str:
    return f"{_path(run)}L{run[-1][0]},{HEIGHT}L{run[0][0]},{HEIGHT}Z"
