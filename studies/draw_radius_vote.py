"""Draw the first picture of mining.md: the class regions of two classifiers on a noisy release.

    python -m studies.draw_radius_vote        # from the root of the project

The table is synthetic with a fixed seed. The picture stores two figures as text, which a test
compares: the number of rows within the radius, and the share of the plane that each classifier
assigns to the small class.
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
from studies.draw_classifier_accuracy import PICTURE_FOLDER, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00")
SHAPES = ("o", "^")
CLASS_SIZES = (264, 36)
NOISE_B = 0.8
QUERY = np.array([1.5, 0.8])
PLANE_HALF_WIDTH = 4.2  # of the plane that is shown


@dataclass(frozen=True, eq=False)
class NoisyExample:
    """A synthetic table, its noisy release, and two classifiers fitted to the release."""

    X: Floats  # (n, 2) records
    Z: Floats  # (n, 2) the release
    label: Ints
    public: PublicParameters

    @cached_property
    def radius_model(self) -> RadiusKNN:
        return RadiusKNN.from_public(self.public, moments="consistent").fit(self.Z, self.label)

    @cached_property
    def noise_aware_model(self) -> NoiseAware:
        return NoiseAware.from_public(self.public, prior="equal").fit(self.Z, self.label)

    @property
    def figures(self) -> dict[str, float]:
        """The figures that the picture stores."""
        plane = make_grid_points()
        return {
            "rows in the ball": float(self.radius_model.report(QUERY[None, :]).mean_neighbours),
            "given by the ball": float(np.mean(self.radius_model.predict(plane))),
            "given by noise-aware": round(float(np.mean(self.noise_aware_model.predict(plane))), 3),
        }


def make_example() -> NoisyExample:
    """Return the table with two classes of unequal size, and its release."""
    rng = np.random.default_rng(5)
    label = np.repeat([0, 1], CLASS_SIZES)
    shapes = ([[0.25, 0.12], [0.12, 0.3]], [[0.12, -0.05], [-0.05, 0.1]])
    clouds = [
        rng.multivariate_normal(centre, shape, size)
        for centre, shape, size in zip(((-0.4, -0.3), QUERY), shapes, CLASS_SIZES, strict=True)
    ]
    X = np.vstack(clouds)
    public = PublicParameters(
        "made", "components", ("x", "y"), law="laplace", scales=np.array([NOISE_B, NOISE_B])
    )
    return NoisyExample(X, X + rng.laplace(0.0, NOISE_B, X.shape), label, public)


def make_grid_points(count: int = 160) -> Floats:
    """Return a grid over the plane."""
    side = np.linspace(-PLANE_HALF_WIDTH, PLANE_HALF_WIDTH, count)
    return np.column_stack([each.ravel() for each in np.meshgrid(side, side)])


def draw_figure(example: NoisyExample) -> Figure:
    """Return the figure: the records, the radius vote, the noise-aware classifier."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    records, radius, noise_aware = figure.subplots(1, 3, sharex=True, sharey=True)
    rows = int(example.figures["rows in the ball"])
    draw_scatter(records, example.X, example.label, "the records, and a query", 1.0)
    draw_scatter(
        radius, example.Z, example.label, f"the release: a ball of {rows} of {len(example.Z)}", 0.5
    )
    draw_scatter(noise_aware, example.Z, example.label, "the classes without the noise", 0.15)
    for axes, model in ((radius, example.radius_model), (noise_aware, example.noise_aware_model)):
        predicted = model.predict(make_grid_points()).reshape(160, 160)
        edge = [-PLANE_HALF_WIDTH, PLANE_HALF_WIDTH, -PLANE_HALF_WIDTH, PLANE_HALF_WIDTH]
        style: dict[str, Any] = {"origin": "lower", "alpha": 0.15, "vmin": 0, "vmax": 1}
        axes.imshow(predicted, extent=edge, cmap=make_colour_map(), **style)
    length = example.radius_model.squared_radius**0.5
    radius.add_patch(Circle((QUERY[0], QUERY[1]), length, fill=False, color="black"))
    draw_ellipses(noise_aware, example.noise_aware_model)
    for axes in (records, radius, noise_aware):
        axes.plot(*QUERY, marker="*", color="black", markersize=12, markeredgecolor="white")
        axes.set_aspect("equal")
        axes.set_xlim(-PLANE_HALF_WIDTH, PLANE_HALF_WIDTH)
        axes.set_ylim(-PLANE_HALF_WIDTH, PLANE_HALF_WIDTH)
        axes.set_xticks([])
        axes.set_yticks([])
    return figure


def draw_scatter(axes: Axes, X: Floats, label: Ints, title: str, alpha: float) -> None:
    """Draw the points of both classes."""
    style_axes(axes)
    axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold")
    for code, (colour, shape) in enumerate(zip(COLOURS, SHAPES, strict=True)):
        mine = X[label == code]
        style: dict[str, Any] = {"s": 14, "alpha": alpha, "linewidths": 0}
        axes.scatter(mine[:, 0], mine[:, 1], color=colour, marker=shape, **style)


def draw_ellipses(axes: Axes, model: NoiseAware) -> None:
    """Draw two standard deviations around the centre of each group, in units of the table."""
    groups = model._model
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    variances = groups.variances(np.array([1.0 - model.setting_.trust]))[0]
    for g, code in enumerate(groups.of_class.tolist()):
        edge = groups.centre[g] + (2.0 * np.sqrt(variances[g]) * circle) @ groups.axes[g].T
        edge = edge * model._unit + model._centre
        axes.plot(edge[:, 0], edge[:, 1], color=COLOURS[code], linewidth=2)


def make_colour_map() -> Any:
    """Return a colour map of the two classes."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(list(COLOURS))


def save_figure(example: NoisyExample, folder: Path = PICTURE_FOLDER) -> Path:
    """Write the picture with its figures as metadata, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ball.png"
    text = {"Software": None, "Figures": json.dumps(example.figures)}
    draw_figure(example).savefig(path, dpi=110, metadata=text)
    return path


if __name__ == "__main__":
    print(save_figure(make_example()))
