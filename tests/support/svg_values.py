"""Values that a figure of a report shows, computed from the coordinates in its SVG alone."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG = re.compile(r'<svg class="wide".*?</svg>', re.DOTALL)


def list_figures(page: str) -> list[ElementTree.Element]:
    """Return the wide figures of a page with an axis of shares, in order."""
    figures = (ElementTree.fromstring(text) for text in SVG.findall(page))
    return [one for one in figures if any(text.text == "in 100" for text in one.iter("text"))]


def read_shares(figure: ElementTree.Element) -> dict[str, list[float]]:
    """Return the shares of all marks on the horizontal axis, by the classes of the marks.

    The axis follows from its labels: the same x, a number as text.
    """
    ticks = [
        (float(text.attrib["x"]), float(text.text or "") / 100)
        for text in figure.iter("text")
        if text.attrib["class"] == "tick" and re.fullmatch(r"[\d.]+", text.text or "")
    ]
    (x0, v0), (x1, v1) = min(ticks), max(ticks)

    def invert(x: float) -> float:
        return v0 + (x - x0) / (x1 - x0) * (v1 - v0)

    found: dict[str, list[float]] = {}
    for mark in figure.iter():
        style = mark.attrib.get("class", "")
        if mark.tag == "circle":
            found.setdefault(style, []).append(invert(float(mark.attrib["cx"])))
        elif mark.tag in ("polyline", "polygon") and style != "grid":
            xs = [float(point.split(",")[0]) for point in mark.attrib["points"].split()]
            places = xs if mark.tag == "polyline" else [(min(xs) + max(xs)) / 2]
            found.setdefault(style, []).extend(map(invert, places))
    return found
