"""Draws the first picture of mining.md: what two classifiers make of one noisy release.

    python -m studies.draw_ball        # from the root of the project

The table is made up, and always the same. The file also carries what a test compares: how many
rows the ball holds, and how much of the plane each classifier gives to the small class.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.miners.noise_aware import NoiseAware
from ppdm_core.miners.radius_knn import RadiusKNN
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.release import PublicParameters
from studies.draw_mining import FOLDER, bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00")
SHAPES = ("o", "^")
SIZES = (264, 36)
B = 0.8
QUERY = np.array([1.5, 0.8])
REACH = 4.2  # of the plane that is shown, from the middle


@dataclass(frozen=True, eq=False)
class Scene:
    X: Floats  # (n, 2) records
    Z: Floats  # (n, 2) the release
    label: Ints
    public: PublicParameters

    @cached_property
    def ball(self) -> RadiusKNN:
        return RadiusKNN.from_public(self.public, moments="consistent").fit(self.Z, self.label)

    @cached_property
    def aware(self) -> NoiseAware:
        return NoiseAware.from_public(self.public, prior="equal").fit(self.Z, self.label)

    @property
    def figures(self) -> dict[str, float]:
        plane = points()
        return {
            "rows in the ball": float(self.ball.report(QUERY[None, :]).mean_neighbours),
            "given by the ball": float(np.mean(self.ball.predict(plane))),
            "given by noise-aware": round(float(np.mean(self.aware.predict(plane))), 3),
        }


def made() -> Scene:
    rng = np.random.default_rng(5)
    label = np.repeat([0, 1], SIZES)
    shapes = ([[0.25, 0.12], [0.12, 0.3]], [[0.12, -0.05], [-0.05, 0.1]])
    clouds = [
        rng.multivariate_normal(centre, shape, size)
        for centre, shape, size in zip(((-0.4, -0.3), QUERY), shapes, SIZES, strict=True)
    ]
    X = np.vstack(clouds)
    public = PublicParameters(
        "made", "components", ("x", "y"), law="laplace", scales=np.array([B, B])
    )
    return Scene(X, X + rng.laplace(0.0, B, X.shape), label, public)


def points(count: int = 160) -> Floats:
    """A grid over the plane."""
    side = np.linspace(-REACH, REACH, count)
    return np.column_stack([each.ravel() for each in np.meshgrid(side, side)])


def draw(scene: Scene) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    records, ball, aware = figure.subplots(1, 3, sharex=True, sharey=True)
    rows = int(scene.figures["rows in the ball"])
    scatter(records, scene.X, scene.label, "the records, and a query", 1.0)
    scatter(ball, scene.Z, scene.label, f"the release: a ball of {rows} of {len(scene.Z)}", 0.5)
    scatter(aware, scene.Z, scene.label, "the classes without the noise", 0.15)
    for axes, model in ((ball, scene.ball), (aware, scene.aware)):
        answers = model.predict(points()).reshape(160, 160)
        edge = [-REACH, REACH, -REACH, REACH]
        style: dict[str, Any] = {"origin": "lower", "alpha": 0.15, "vmin": 0, "vmax": 1}
        axes.imshow(answers, extent=edge, cmap=two_colours(), **style)
    radius = scene.ball.squared_radius**0.5
    ball.add_patch(Circle((QUERY[0], QUERY[1]), radius, fill=False, color="black"))
    ellipses(aware, scene.aware)
    for axes in (records, ball, aware):
        axes.plot(*QUERY, marker="*", color="black", markersize=12, markeredgecolor="white")
        axes.set_aspect("equal")
        axes.set_xlim(-REACH, REACH)
        axes.set_ylim(-REACH, REACH)
        axes.set_xticks([])
        axes.set_yticks([])
    return figure


def scatter(axes: Axes, X: Floats, label: Ints, title: str, alpha: float) -> None:
    bare(axes)
    axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold")
    for code, (colour, shape) in enumerate(zip(COLOURS, SHAPES, strict=True)):
        mine = X[label == code]
        style: dict[str, Any] = {"s": 14, "alpha": alpha, "linewidths": 0}
        axes.scatter(mine[:, 0], mine[:, 1], color=colour, marker=shape, **style)


def ellipses(axes: Axes, model: NoiseAware) -> None:
    """Two deviations around the centre of each group, in the units of the table."""
    groups = model._model
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    variances = groups.variances(np.array([1.0 - model.setting_.trust]))[0]
    for g, code in enumerate(groups.of_class.tolist()):
        edge = groups.centre[g] + (2.0 * np.sqrt(variances[g]) * circle) @ groups.axes[g].T
        edge = edge * model._unit + model._middle
        axes.plot(edge[:, 0], edge[:, 1], color=COLOURS[code], linewidth=2)


def two_colours() -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap(list(COLOURS))


def save(scene: Scene, folder: Path = FOLDER) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ball.png"
    text = {"Software": None, "Figures": json.dumps(scene.figures)}
    draw(scene).savefig(path, dpi=110, metadata=text)
    return path


if __name__ == "__main__":
    print(save(made()))
