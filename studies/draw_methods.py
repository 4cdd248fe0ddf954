"""Draws the pictures of choosing_a_method.md: one small table before and after each method.

    python -m studies.draw_methods        # from the root of the project

The table is made up and the key is fixed, so a picture is always the same. Each file also carries
the numbers that it shows, as text, and a test compares these with what the methods give today.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Guarantee
from ppdm_core.model.rows import ArrayRows, Block
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[Any]  # (n, 2)
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "methods"
KEY = bytes(range(32))
GROUPS = ("group 1", "group 2", "group 3")
COLOURS = ("#D55E00", "#0072B2", "#E69F00")  # told apart by colour-blind people
SHAPES = ("o", "s", "^")  # and without any colour
GREY = "#8C8C8C"
SIZE = 60  # records a group
GRID = Categorical("smokes", ("never", "former", "daily"))
LANES = Categorical("exercises", ("rarely", "weekly", "daily"))
FOLLOWED = "A, B: two people to follow"
TRUTHS = tuple(f"truly {word}" for word in GRID.categories)

PARAMETERS: dict[str, Mapping[str, Any]] = {
    "pca_laplace": {"components": 1, "gamma": {"record": 1000}, "basis_share": 0.2},
    "additive_noise": {"b": 0.29},
    "random_rotation": {},
    "random_projection": {"components": 1},
    "dct_fuzzy": {"b": 0.1, "p": 0.2},
    "kde_resample": {"bandwidth": "corrected"},
    "nonmetric_mds": {"dimensions": 1},
    "randomized_response": {"gamma": {"attribute": 3}},
    "pipeline": {
        "numeric": {"method": "additive_noise", "b": 0.29},
        "categorical": {"method": "randomized_response", "gamma": {"attribute": 3}},
    },
}


@dataclass(frozen=True, eq=False)
class Scene:
    """One method at work on the made table."""

    method: str
    before: Block  # the records that are released
    after: Block
    aside: Block  # records that only the fit saw
    columns: tuple[str, ...]  # names of the released numeric columns
    guarantee: Guarantee

    @property
    def numbers(self) -> dict[str, list[Any]]:
        """What the picture shows, in few digits."""
        return {"X": self.after.X.round(4).tolist(), "C": self.after.C.tolist()}


def made_table() -> ArrayRows:
    """Three groups of people in two numeric and two categorical columns, and two loners."""
    rng = np.random.default_rng(11)
    centres = ((0.24, 0.30), (0.52, 0.70), (0.78, 0.42))
    spreads = (((5, 2), (2, 3)), ((4, 2), (2, 4)), ((3, -1), (-1, 5)))
    clouds = [
        rng.multivariate_normal(centre, np.array(spread) / 1000, SIZE)
        for centre, spread in zip(centres, spreads, strict=True)
    ]
    X = np.vstack([*clouds, [[0.08, 0.94], [0.95, 0.92]]])  # the loners come last: A, B
    label = np.array([*np.repeat(range(3), SIZE), 0, 2], dtype=np.int32)
    habits = np.array(((0.6, 0.25, 0.15), (0.15, 0.6, 0.25), (0.1, 0.2, 0.7)))
    C = np.array([[rng.choice(3, p=habits[g]), rng.choice(3, p=habits[2 - g])] for g in label])
    C[-2:] = (0, 2), (2, 0)
    numeric = tuple(Numeric(name, 0.0, 1.0) for name in ("x", "y"))
    schema = Schema(numeric, (GRID, LANES), Categorical("group", GROUPS))
    return ArrayRows(schema, np.clip(X, 0, 1), label, C=C.astype(np.int32))


def cut_for(method: str) -> ArrayRows:
    """Of the made table the two columns that the method takes."""
    rows = made_table()
    kinds = {"randomized_response": (0, 2), "pipeline": (1, 1)}
    d, c = kinds.get(method, (2, 0))
    schema = Schema(rows.schema.numeric[:d], rows.schema.categorical[:c], rows.schema.label)
    return ArrayRows(schema, rows.whole.X[:, :d], rows.whole.label, C=rows.whole.C[:, :c])


def picked(rows: ArrayRows, keep: Any) -> ArrayRows:
    whole = rows.whole
    return ArrayRows(rows.schema, whole.X[keep], whole.label[keep], whole.key[keep], whole.C[keep])


def play(method: str) -> Scene:
    sanitizer = make_sanitizer(method, PARAMETERS[method])
    rows = cut_for(method)
    # A release draws these with the key; here every fifth record will do.
    is_aside = np.arange(rows.n) % 5 == 2 if sanitizer.set_aside else np.zeros(rows.n, dtype=bool)
    aside, kept = picked(rows, is_aside), picked(rows, ~is_aside)
    learned = aside if aside.n else kept
    scaling = fit_scaling(learned, sanitizer.scale)
    fitted = {**sanitizer.fit(scaling.apply(learned)), "scaling": scaling.as_dict()}
    released = sanitizer.sanitize(scaling.apply(kept), Noise(KEY), fitted)
    (after,) = released.rows.blocks()
    guarantee = sanitizer.guarantee(rows.schema, fitted)
    return Scene(method, kept.whole, after, aside.whole, released.public.columns, guarantee)


def draw(scene: Scene) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, title in ((left, "before"), (right, "after")):
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        axes.set_box_aspect(1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GREY)
        axes.tick_params(colors="#404040", labelsize=8)
    painters = {"randomized_response": draw_grid, "pipeline": draw_lanes}
    painters.get(scene.method, draw_points)(left, right, scene)
    handles, names = left.get_legend_handles_labels()
    once = dict(zip(names, handles, strict=True))  # both followed people have one name
    style: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "ncols": 5, "columnspacing": 1.4}
    figure.legend(once.values(), once.keys(), loc="outside lower center", **style)
    return figure


def draw_points(left: Axes, right: Axes, scene: Scene) -> None:
    """Two numeric columns, and the one or two that become of them."""
    before, after, Y = scene.before, scene.after, scene.after.X
    left.set(xlabel="x", ylabel="y")
    right.set_xlabel(scene.columns[0])
    if Y.shape[1] == 1:
        # Labels are released, so that a recipient can sort the rows into these lanes, too.
        Y = np.column_stack([Y, 2 - after.label + jitter(len(Y), 0.62)])
        right.set_yticks(range(3), reversed(GROUPS))
        right.set_ylim(-0.6, 2.6)
    else:
        right.set_ylabel(scene.columns[1])
    scatter(left, before.X, before.label)
    scatter(right, Y, after.label)
    if scene.aside.n:
        x, y = scene.aside.X.T
        left.scatter(x, y, s=14, marker="x", lw=0.8, color=GREY, label="set aside")
    mark(left, before.X, before.record, before.n)
    mark(right, Y, after.record, before.n)
    is_same_space = scene.columns == ("x", "y")
    points = np.vstack([before.X, Y]) if is_same_space else before.X
    square(left, points)
    if Y is after.X:
        square(right, points if is_same_space else Y)
    bounded = (left, right) if is_same_space else (left,)
    for axes in bounded:
        axes.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], color=GREY, linewidth=0.7, zorder=0)


def square(axes: Axes, points: Floats) -> None:
    """One unit is as long up as across, and at least the width of the bounds is shown."""
    low, high = points.min(axis=0), points.max(axis=0)
    within = (low >= 0).all() and (high <= 1).all()
    middle = np.array([0.5, 0.5]) if within else (low + high) / 2
    half = max(0.5, (high - low).max() / 2) * 1.06
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))


def scatter(axes: Axes, X: Points, group: Codes, names: Sequence[str] = GROUPS) -> None:
    for i, (colour, shape) in enumerate(zip(COLOURS, SHAPES, strict=True)):
        x, y = X[group == i].T
        axes.scatter(x, y, s=17, marker=shape, color=colour, alpha=0.75, lw=0, label=names[i])


def mark(axes: Axes, X: Points, record: Ints, n: int) -> None:
    """The loners, who come last in the table, and every row that was made from them."""
    for letter, place, offset in (("A", n - 2, (7, 4)), ("B", n - 1, (-14, 4))):
        for x, y in X[record == place].tolist():
            axes.scatter(x, y, s=95, facecolors="none", edgecolors="black", label=FOLLOWED)
            style: dict[str, Any] = {"fontsize": 9, "fontweight": "bold"}
            axes.annotate(letter, (x, y), offset, textcoords="offset points", **style)


def draw_grid(left: Axes, right: Axes, scene: Scene) -> None:
    """Two categorical columns, each record at a random place of its cell."""
    truth, n = scene.before.C[:, 0], scene.before.n
    for axes, block in ((left, scene.before), (right, scene.after)):
        X = block.C + np.column_stack([jitter(n, 0.7), jitter(n, 0.55, seed=1) - 0.08])
        scatter(axes, X, truth, TRUTHS)
        mark(axes, X, block.record, n)
        axes.set(xlabel=GRID.name, ylabel=LANES.name, xlim=(-0.5, 2.5), ylim=(-0.5, 2.5))
        axes.set_xticks(range(3), GRID.categories)
        axes.set_yticks(range(3), LANES.categories)
        for edge in (0.5, 1.5):
            axes.axhline(edge, color=GREY, linewidth=0.6, zorder=0)
            axes.axvline(edge, color=GREY, linewidth=0.6, zorder=0)
        for cell in np.ndindex(3, 3):
            count = int(np.equal(block.C, cell).all(axis=1).sum())
            place = (cell[0] + 0.46, cell[1] + 0.44)
            axes.text(*place, str(count), ha="right", va="top", fontsize=8, color="#404040")


def draw_lanes(left: Axes, right: Axes, scene: Scene) -> None:
    """One numeric column across, one categorical column up."""
    truth, n = scene.before.C[:, 0], scene.before.n
    for axes, block in ((left, scene.before), (right, scene.after)):
        X = np.column_stack([block.X[:, 0], block.C[:, 0] + jitter(n, 0.62)])
        scatter(axes, X, truth, TRUTHS)
        mark(axes, X, block.record, n)
        axes.set(xlabel="x", ylabel=GRID.name, ylim=(-0.5, 2.5))
        axes.set_yticks(range(3), GRID.categories)
        for edge in (0, 1):
            axes.axvline(edge, color=GREY, linewidth=0.7, zorder=0)
    edges = [edge for axes in (left, right) for edge in axes.get_xlim()]
    for axes in (left, right):
        axes.set_xlim(min(edges), max(edges))


def jitter(n: int, width: float, seed: int = 0) -> Floats:
    places: Floats = width * (np.random.default_rng(seed).random(n) - 0.5)
    return places


def save(scene: Scene, folder: Path = FOLDER) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{scene.method}.png"
    text = {"Software": None, "Released": json.dumps(scene.numbers)}
    draw(scene).savefig(path, dpi=150, metadata=text)
    return path


def main() -> None:
    for method in PARAMETERS:
        print(save(play(method)))


if __name__ == "__main__":
    main()
