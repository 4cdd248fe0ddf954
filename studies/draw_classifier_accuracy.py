"""Draw the pictures of mining.md and print its tables.

    python -m studies.draw_classifier_accuracy           # measure, draw and print
    python -m studies.draw_classifier_accuracy tables    # print the figures of the pictures

Run it from the root of the project. The releases are made from public tables with fixed seeds (see
studies/classifier_accuracy.py). Each picture stores the figures of every draw as text. All of it
takes about twenty minutes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from studies import classifier_accuracy as accuracy
from studies.classifier_accuracy import Figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "mining"
GREY, DARK = "#8C8C8C", "#404040"
STYLES = {
    "radius": ("#D55E00", "o"),
    "consistent": ("#E69F00", "s"),
    "k = 5": ("#CC79A7", "v"),
    "best k": ("#0072B2", "D"),
    "noise-aware": ("#009E73", "^"),
    "noise-aware, equal": ("#56B4E9", ">"),
}
PAPER_DRAWS = {"wine": 30, "wdbc": 30, "waveform": 6}
UNBALANCED_LEVELS = (0.05, *accuracy.NOISE_LEVELS)
UNBALANCED_DRAWS = 10
SHOWN_LEVEL = 0.3  # noise level of the picture of unbalanced tables
Results = dict[str, Figures]  # "wine 0.2": figures


def measure_paper_tables() -> Results:
    """Return the figures of the tables of the paper."""
    return {
        f"{name} {b}": accuracy.measure_paper_table(name, b, PAPER_DRAWS[name])
        for name in accuracy.PAPER_TABLES
        for b in accuracy.NOISE_LEVELS
    }


def measure_unbalanced_tables() -> Results:
    """Return the figures of the unbalanced tables."""
    return {
        f"{name} {b}": accuracy.measure_unbalanced_table(name, b, UNBALANCED_DRAWS)
        for name in accuracy.UNBALANCED_TABLES
        for b in UNBALANCED_LEVELS
    }


def compute_mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of some values and its standard error."""
    found = np.array(values)
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found)))


def draw_paper(results: Results) -> Figure:
    """Return the figure of accuracy over noise."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, 3, sharey=True), accuracy.PAPER_TABLES, strict=True):
        style_axes(axes)
        levels = [results[f"{name} {b}"] for b in accuracy.NOISE_LEVELS]
        clean = float(np.mean(levels[0]["no noise, k = 5"]["accuracy"]))
        for classifier in ("noise-aware", "best k", "radius", "k = 5"):
            colour, shape = STYLES[classifier]
            points = [compute_mean_and_error(level[classifier]["accuracy"]) for level in levels]
            means, errors = [clean, *(m for m, _ in points)], [0.0, *(e for _, e in points)]
            style: dict[str, Any] = {"color": colour, "marker": shape, "markersize": 5}
            axes.errorbar(
                (0.0, *accuracy.NOISE_LEVELS), means, errors, label=classifier, capsize=2, **style
            )
        commonest = float(np.mean(levels[0]["commonest"]["accuracy"]))
        axes.axhline(commonest, color=GREY, linewidth=1, linestyle=":", label="most frequent class")
        axes.set_title(accuracy.TABLE_TITLES[name], loc="left", fontsize=10, fontweight="bold")
        axes.set_xticks([0.0, *accuracy.NOISE_LEVELS], ["none", *map(str, accuracy.NOISE_LEVELS)])
        axes.set_xlabel("noise, b", fontsize=9)
        axes.set_ylim(0.25, 1.0)
    axes = figure.axes[0]
    axes.set_ylabel("correct", fontsize=9)
    handles, names = axes.get_legend_handles_labels()
    style = {"frameon": False, "fontsize": 9, "ncols": 5}
    figure.legend(handles, names, loc="outside lower center", **style)
    return figure


def draw_unbalanced(results: Results) -> Figure:
    """Return the figure of accuracy on unbalanced tables at one noise level."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    sides = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(accuracy.UNBALANCED_TABLES))[::-1]
    titles = {"accuracy": "correct", "balanced": "correct, mean of the classes"}
    for axes, (key, title) in zip(sides, titles.items(), strict=True):
        style_axes(axes)
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        for classifier in (
            "commonest",
            "radius",
            "consistent",
            "noise-aware",
            "noise-aware, equal",
        ):
            colour, shape = STYLES.get(classifier, (GREY, "|"))
            points = [
                compute_mean_and_error(results[f"{name} {SHOWN_LEVEL}"][classifier][key])
                for name in accuracy.UNBALANCED_TABLES
            ]
            means, errors = zip(*points, strict=True)
            style: dict[str, Any] = {"color": colour, "marker": shape, "linestyle": "none"}
            label = "most frequent class" if classifier == "commonest" else classifier
            if (
                classifier == "radius"
            ):  # drawn around the point of "consistent", which is often the same
                style |= {"markersize": 11, "markerfacecolor": "none"}
            axes.errorbar(means, places, xerr=errors, label=label, **{"markersize": 6, **style})
        axes.set_xlim(0.05 if key == "balanced" else 0.3, 1.0)
    sides[0].set_yticks(
        places, [accuracy.TABLE_TITLES[name] for name in accuracy.UNBALANCED_TABLES]
    )
    handles, names = sides[0].get_legend_handles_labels()
    legend: dict[str, Any] = {"frameon": False, "fontsize": 9, "ncols": 5}
    figure.legend(handles, names, loc="outside lower center", **legend)
    return figure


def style_axes(axes: Axes) -> None:
    """Remove the upper and right border and set the colours."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=DARK, labelsize=8)
    axes.set_axisbelow(True)


PICTURES = {
    "paper": (measure_paper_tables, draw_paper),
    "unbalanced": (measure_unbalanced_tables, draw_unbalanced),
}


def save_figure(name: str, results: Results, folder: Path = PICTURE_FOLDER) -> Path:
    """Write a picture with its figures as metadata, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    text = {"Software": None, "Figures": json.dumps(results, separators=(",", ":"))}
    PICTURES[name][1](results).savefig(path, dpi=110, metadata=text)
    return path


def read_figures(name: str, folder: Path = PICTURE_FOLDER) -> Results:
    """Return the figures that a picture stores."""
    from PIL import Image

    with Image.open(folder / f"{name}.png") as picture:
        picture.load()
        return dict(json.loads(picture.text["Figures"]))  # type: ignore[attr-defined]


def format_paper_table(results: Results) -> list[str]:
    """Return the lines of the table of the paper's data."""
    classifiers = ("no noise, k = 5", "radius", "k = 5", "best k", "noise-aware")
    gaps = (("radius", "best k"), ("radius", "k = 5"), ("noise-aware", "best k"))
    heads = ["table", "b", *classifiers, *(f"{one} less {other}" for one, other in gaps)]
    lines = [heads, ["---"] * len(heads)]
    for key, figures in results.items():
        name, b = key.rsplit(" ", 1)
        shares = [
            f"{100 * np.mean(figures[classifier]['accuracy']):.1f}" for classifier in classifiers
        ]
        found = [format_points(accuracy.compute_gain(figures, *pair, "accuracy")) for pair in gaps]
        lines.append([accuracy.TABLE_TITLES[name], b, *shares, *found])
    return [f"| {' | '.join(cells)} |" for cells in lines]


def format_radius_table(results: Results) -> list[str]:
    """Return the lines of the table of how many rows vote."""
    heads = [
        "table",
        "b",
        "rows within the radius",
        "the same, consistent",
        "most frequent class predicted",
    ]
    lines = [heads, ["---"] * len(heads)]
    for key, figures in results.items():
        name, b = key.rsplit(" ", 1)
        means = [
            float(np.mean(figures["radius"]["ball"])),
            float(np.mean(figures["consistent"]["ball"])),
            float(np.mean(figures["radius"]["majority"])),
        ]
        lines.append([accuracy.TABLE_TITLES[name], b, *(f"{100 * mean:.0f} %" for mean in means)])
    return [f"| {' | '.join(cells)} |" for cells in lines]


def format_unbalanced_table(results: Results, b: float) -> list[str]:
    """Return the lines of the table of unbalanced data at one noise level."""
    classifiers = ("commonest", "radius", "consistent", "noise-aware", "noise-aware, equal")
    heads = ["table", *classifiers, "correct, gain", "mean of the classes, gain"]
    lines = [heads, ["---"] * len(heads)]
    for name in accuracy.UNBALANCED_TABLES:
        figures = results[f"{name} {b}"]
        pairs = [
            " / ".join(
                f"{100 * np.mean(figures[classifier][key]):.1f}" for key in ("accuracy", "balanced")
            )
            for classifier in classifiers
        ]
        gains = [compute_worst_gain(figures, key) for key in ("accuracy", "balanced")]
        lines.append([accuracy.TABLE_TITLES[name], *pairs, *map(format_points, gains)])
    return [f"| {' | '.join(cells)} |" for cells in lines]


def compute_worst_gain(figures: Figures, key: str) -> tuple[float, float]:
    """Return the gain of "noise-aware" over the better of the two radius classifiers."""
    gains = [
        accuracy.compute_gain(figures, "noise-aware", other, key)
        for other in ("radius", "consistent")
    ]
    return min(gains)


def format_points(gain: tuple[float, float]) -> str:
    """Return a gain and its standard error in percentage points."""
    return f"{100 * gain[0]:+.1f} ± {100 * gain[1]:.1f}"


def format_tables() -> list[list[str]]:
    """Return the lines of every table, from the figures that the pictures store."""
    paper, unbalanced = read_figures("paper"), read_figures("unbalanced")
    return [
        format_paper_table(paper),
        format_radius_table(paper),
        *(format_unbalanced_table(unbalanced, b) for b in UNBALANCED_LEVELS),
    ]


def main(arguments: Sequence[str]) -> None:
    if "tables" not in arguments:
        for name, (measure, _) in PICTURES.items():
            print(save_figure(name, measure()), file=sys.stderr, flush=True)
    print("\n\n".join("\n".join(lines) for lines in format_tables()))


if __name__ == "__main__":
    main(sys.argv[1:])
