"""Draws the pictures of mining.md and prints its tables.

    python -m studies.draw_mining           # from the root of the project: measures, draws, prints
    python -m studies.draw_mining tables    # prints what the pictures hold

The releases are real ones of public tables (see studies/mining.py), always the same. Each picture
also carries the figures of every draw, as text. All of it takes about twenty minutes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from studies import mining
from studies.mining import Figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "mining"
GREY, DARK = "#8C8C8C", "#404040"
LOOKS = {
    "radius": ("#D55E00", "o"),
    "consistent": ("#E69F00", "s"),
    "k = 5": ("#CC79A7", "v"),
    "best k": ("#0072B2", "D"),
    "noise-aware": ("#009E73", "^"),
    "noise-aware, equal": ("#56B4E9", ">"),
}
DRAWS = {"wine": 30, "wdbc": 30, "waveform": 6}
UNBALANCED_LEVELS = (0.05, *mining.LEVELS)
UNBALANCED_DRAWS = 10
SHOWN = 0.3  # the noise level of the picture of unbalanced tables
Contest = dict[str, Figures]  # "wine 0.2": figures


def paper_figures() -> Contest:
    return {
        f"{name} {b}": mining.paper_contest(name, b, DRAWS[name])
        for name in mining.PAPER
        for b in mining.LEVELS
    }


def unbalanced_figures() -> Contest:
    return {
        f"{name} {b}": mining.unbalanced_contest(name, b, UNBALANCED_DRAWS)
        for name in mining.UNBALANCED
        for b in UNBALANCED_LEVELS
    }


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    found = np.array(values)
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found)))


def draw_paper(contest: Contest) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, 3, sharey=True), mining.PAPER, strict=True):
        bare(axes)
        levels = [contest[f"{name} {b}"] for b in mining.LEVELS]
        clean = float(np.mean(levels[0]["no noise, k = 5"]["accuracy"]))
        for who in ("noise-aware", "best k", "radius", "k = 5"):
            colour, shape = LOOKS[who]
            points = [mean_and_error(level[who]["accuracy"]) for level in levels]
            means, errors = [clean, *(m for m, _ in points)], [0.0, *(e for _, e in points)]
            style: dict[str, Any] = {"color": colour, "marker": shape, "markersize": 5}
            axes.errorbar((0.0, *mining.LEVELS), means, errors, label=who, capsize=2, **style)
        commonest = float(np.mean(levels[0]["commonest"]["accuracy"]))
        axes.axhline(commonest, color=GREY, linewidth=1, linestyle=":", label="commonest class")
        axes.set_title(mining.NAMES[name], loc="left", fontsize=10, fontweight="bold")
        axes.set_xticks([0.0, *mining.LEVELS], ["none", *map(str, mining.LEVELS)])
        axes.set_xlabel("noise, b", fontsize=9)
        axes.set_ylim(0.25, 1.0)
    axes = figure.axes[0]
    axes.set_ylabel("correct", fontsize=9)
    handles, names = axes.get_legend_handles_labels()
    style = {"frameon": False, "fontsize": 9, "ncols": 5}
    figure.legend(handles, names, loc="outside lower center", **style)
    return figure


def draw_unbalanced(contest: Contest) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    sides = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(mining.UNBALANCED))[::-1]
    titles = {"accuracy": "correct", "balanced": "correct, mean of the classes"}
    for axes, (key, title) in zip(sides, titles.items(), strict=True):
        bare(axes)
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        for who in ("commonest", "radius", "consistent", "noise-aware", "noise-aware, equal"):
            colour, shape = LOOKS.get(who, (GREY, "|"))
            points = [
                mean_and_error(contest[f"{name} {SHOWN}"][who][key]) for name in mining.UNBALANCED
            ]
            means, errors = zip(*points, strict=True)
            style: dict[str, Any] = {"color": colour, "marker": shape, "linestyle": "none"}
            label = "commonest class" if who == "commonest" else who
            if who == "radius":  # around the point of "consistent", which is often the same
                style |= {"markersize": 11, "markerfacecolor": "none"}
            axes.errorbar(means, places, xerr=errors, label=label, **{"markersize": 6, **style})
        axes.set_xlim(0.05 if key == "balanced" else 0.3, 1.0)
    sides[0].set_yticks(places, [mining.NAMES[name] for name in mining.UNBALANCED])
    handles, names = sides[0].get_legend_handles_labels()
    legend: dict[str, Any] = {"frameon": False, "fontsize": 9, "ncols": 5}
    figure.legend(handles, names, loc="outside lower center", **legend)
    return figure


def bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=DARK, labelsize=8)
    axes.set_axisbelow(True)


PICTURES = {
    "paper": (paper_figures, draw_paper),
    "unbalanced": (unbalanced_figures, draw_unbalanced),
}


def save(name: str, contest: Contest, folder: Path = FOLDER) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    text = {"Software": None, "Figures": json.dumps(contest, separators=(",", ":"))}
    PICTURES[name][1](contest).savefig(path, dpi=110, metadata=text)
    return path


def kept(name: str, folder: Path = FOLDER) -> Contest:
    """The figures that a picture carries."""
    from PIL import Image

    with Image.open(folder / f"{name}.png") as picture:
        picture.load()
        return dict(json.loads(picture.text["Figures"]))  # type: ignore[attr-defined]


def paper_table(contest: Contest) -> list[str]:
    whos = ("no noise, k = 5", "radius", "k = 5", "best k", "noise-aware")
    gaps = (("radius", "best k"), ("radius", "k = 5"), ("noise-aware", "best k"))
    heads = ["table", "b", *whos, *(f"{one} less {other}" for one, other in gaps)]
    lines = [heads, ["---"] * len(heads)]
    for key, figures in contest.items():
        name, b = key.rsplit(" ", 1)
        shares = [f"{100 * np.mean(figures[who]['accuracy']):.1f}" for who in whos]
        found = [in_points(mining.gain(figures, *pair, "accuracy")) for pair in gaps]
        lines.append([mining.NAMES[name], b, *shares, *found])
    return [f"| {' | '.join(cells)} |" for cells in lines]


def ball_table(contest: Contest) -> list[str]:
    heads = ["table", "b", "rows in a ball", "the same, consistent", "commonest class answered"]
    lines = [heads, ["---"] * len(heads)]
    for key, figures in contest.items():
        name, b = key.rsplit(" ", 1)
        means = [
            float(np.mean(figures["radius"]["ball"])),
            float(np.mean(figures["consistent"]["ball"])),
            float(np.mean(figures["radius"]["majority"])),
        ]
        lines.append([mining.NAMES[name], b, *(f"{100 * mean:.0f} %" for mean in means)])
    return [f"| {' | '.join(cells)} |" for cells in lines]


def unbalanced_table(contest: Contest, b: float) -> list[str]:
    whos = ("commonest", "radius", "consistent", "noise-aware", "noise-aware, equal")
    heads = ["table", *whos, "correct, gain", "mean of the classes, gain"]
    lines = [heads, ["---"] * len(heads)]
    for name in mining.UNBALANCED:
        figures = contest[f"{name} {b}"]
        pairs = [
            " / ".join(
                f"{100 * np.mean(figures[who][key]):.1f}" for key in ("accuracy", "balanced")
            )
            for who in whos
        ]
        gains = [worst_gain(figures, key) for key in ("accuracy", "balanced")]
        lines.append([mining.NAMES[name], *pairs, *map(in_points, gains)])
    return [f"| {' | '.join(cells)} |" for cells in lines]


def worst_gain(figures: Figures, key: str) -> tuple[float, float]:
    """Of "noise-aware" over the better of the two balls."""
    gains = [mining.gain(figures, "noise-aware", other, key) for other in ("radius", "consistent")]
    return min(gains)


def in_points(gain: tuple[float, float]) -> str:
    return f"{100 * gain[0]:+.1f} ± {100 * gain[1]:.1f}"


def tables() -> list[list[str]]:
    paper, unbalanced = kept("paper"), kept("unbalanced")
    return [
        paper_table(paper),
        ball_table(paper),
        *(unbalanced_table(unbalanced, b) for b in UNBALANCED_LEVELS),
    ]


def main(asked: Sequence[str]) -> None:
    if "tables" not in asked:
        for name, (measured, _) in PICTURES.items():
            print(save(name, measured()), file=sys.stderr, flush=True)
    print("\n\n".join("\n".join(lines) for lines in tables()))


if __name__ == "__main__":
    main(sys.argv[1:])
