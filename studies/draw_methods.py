"""Draw the pictures of choosing_a_method.md: one small table before and after each method.

    python -m studies.draw_methods        # from the root of the project

The table is synthetic and the key is fixed, so a picture is always the same. Each picture stores
the released values as text, and a test compares these with the output of the methods.
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
PICTURE_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "methods"
KEY = bytes(range(32))
GROUPS = ("group 1", "group 2", "group 3")
COLOURS = ("#D55E00", "#0072B2", "#E69F00")  # distinguishable with colour blindness
SHAPES = ("o", "s", "^")  # distinguishable without colour
GREY = "#8C8C8C"
RECORDS_PER_GROUP = 60
SMOKES = Categorical("smokes", ("never", "former", "daily"))
EXERCISES = Categorical("exercises", ("rarely", "weekly", "daily"))
FOLLOWED_LABEL = "A, B: two marked records"
TRUE_LABELS = tuple(f"truly {word}" for word in SMOKES.categories)

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
class MethodExample:
    """The synthetic table before and after one method."""

    method: str
    before: Block  # the records that are released
    after: Block
    basis_records: Block  # records that only the fit used
    columns: tuple[str, ...]  # names of the released numeric columns
    guarantee: Guarantee

    @property
    def released_values(self) -> dict[str, list[Any]]:
        """The rounded values that the picture shows."""
        return {"X": self.after.X.round(4).tolist(), "C": self.after.C.tolist()}


def make_table() -> ArrayRows:
    """Return three groups of records and two outliers, with numeric and categorical columns."""
    rng = np.random.default_rng(11)
    centres = ((0.24, 0.30), (0.52, 0.70), (0.78, 0.42))
    spreads = (((5, 2), (2, 3)), ((4, 2), (2, 4)), ((3, -1), (-1, 5)))
    clouds = [
        rng.multivariate_normal(centre, np.array(spread) / 1000, RECORDS_PER_GROUP)
        for centre, spread in zip(centres, spreads, strict=True)
    ]
    X = np.vstack(
        [*clouds, [[0.08, 0.94], [0.95, 0.92]]]
    )  # the outliers A and B are the last records
    label = np.array([*np.repeat(range(3), RECORDS_PER_GROUP), 0, 2], dtype=np.int32)
    habits = np.array(((0.6, 0.25, 0.15), (0.15, 0.6, 0.25), (0.1, 0.2, 0.7)))
    C = np.array([[rng.choice(3, p=habits[g]), rng.choice(3, p=habits[2 - g])] for g in label])
    C[-2:] = (0, 2), (2, 0)
    numeric = tuple(Numeric(name, 0.0, 1.0) for name in ("x", "y"))
    schema = Schema(numeric, (SMOKES, EXERCISES), Categorical("group", GROUPS))
    return ArrayRows(schema, np.clip(X, 0, 1), label, C=C.astype(np.int32))


def select_columns(method: str) -> ArrayRows:
    """Return the two columns of the table that a method accepts."""
    rows = make_table()
    kinds = {"randomized_response": (0, 2), "pipeline": (1, 1)}
    d, c = kinds.get(method, (2, 0))
    schema = Schema(rows.schema.numeric[:d], rows.schema.categorical[:c], rows.schema.label)
    return ArrayRows(schema, rows.whole.X[:, :d], rows.whole.label, C=rows.whole.C[:, :c])


def select_records(rows: ArrayRows, keep: Any) -> ArrayRows:
    """Return some records of a table."""
    whole = rows.whole
    return ArrayRows(rows.schema, whole.X[keep], whole.label[keep], whole.key[keep], whole.C[keep])


def run_method(method: str) -> MethodExample:
    """Release the table with one method."""
    sanitizer = make_sanitizer(method, PARAMETERS[method])
    rows = select_columns(method)
    # The pipeline chooses these records with the key; a picture takes every fifth.
    in_basis = np.arange(rows.n) % 5 == 2 if sanitizer.set_aside else np.zeros(rows.n, dtype=bool)
    basis_records, released_records = (
        select_records(rows, in_basis),
        select_records(rows, ~in_basis),
    )
    fit_records = basis_records if basis_records.n else released_records
    scaling = fit_scaling(fit_records, sanitizer.scale)
    fitted = {**sanitizer.fit(scaling.apply(fit_records)), "scaling": scaling.as_dict()}
    released = sanitizer.sanitize(scaling.apply(released_records), Noise(KEY), fitted)
    (after,) = released.rows.blocks()
    guarantee = sanitizer.guarantee(rows.schema, fitted)
    return MethodExample(
        method,
        released_records.whole,
        after,
        basis_records.whole,
        released.public.columns,
        guarantee,
    )


def draw_figure(example: MethodExample) -> Figure:
    """Return the figure of the table before and after a method."""
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
    painters.get(example.method, draw_points)(left, right, example)
    handles, names = left.get_legend_handles_labels()
    once = dict(zip(names, handles, strict=True))  # both marked records share one label
    style: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "ncols": 5, "columnspacing": 1.4}
    figure.legend(once.values(), once.keys(), loc="outside lower center", **style)
    return figure


def draw_points(left: Axes, right: Axes, example: MethodExample) -> None:
    """Draw two numeric columns, and the one or two released columns."""
    before, after, Y = example.before, example.after, example.after.X
    left.set(xlabel="x", ylabel="y")
    right.set_xlabel(example.columns[0])
    if Y.shape[1] == 1:
        # Labels are released, so a recipient can group the rows in the same way.
        Y = np.column_stack([Y, 2 - after.label + draw_jitter(len(Y), 0.62)])
        right.set_yticks(range(3), reversed(GROUPS))
        right.set_ylim(-0.6, 2.6)
    else:
        right.set_ylabel(example.columns[1])
    draw_scatter(left, before.X, before.label)
    draw_scatter(right, Y, after.label)
    if example.basis_records.n:
        x, y = example.basis_records.X.T
        left.scatter(x, y, s=14, marker="x", lw=0.8, color=GREY, label="set aside")
    mark_followed(left, before.X, before.record, before.n)
    mark_followed(right, Y, after.record, before.n)
    is_same_space = example.columns == ("x", "y")
    points = np.vstack([before.X, Y]) if is_same_space else before.X
    set_square_limits(left, points)
    if Y is after.X:
        set_square_limits(right, points if is_same_space else Y)
    bounded = (left, right) if is_same_space else (left,)
    for axes in bounded:
        axes.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], color=GREY, linewidth=0.7, zorder=0)


def set_square_limits(axes: Axes, points: Floats) -> None:
    """Set equal limits on both axes that show at least the declared bounds."""
    low, high = points.min(axis=0), points.max(axis=0)
    within = (low >= 0).all() and (high <= 1).all()
    middle = np.array([0.5, 0.5]) if within else (low + high) / 2
    half = max(0.5, (high - low).max() / 2) * 1.06
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))


def draw_scatter(axes: Axes, X: Points, group: Codes, names: Sequence[str] = GROUPS) -> None:
    """Draw the points of each group in its colour and shape."""
    for i, (colour, shape) in enumerate(zip(COLOURS, SHAPES, strict=True)):
        x, y = X[group == i].T
        axes.scatter(x, y, s=17, marker=shape, color=colour, alpha=0.75, lw=0, label=names[i])


def mark_followed(axes: Axes, X: Points, record: Ints, n: int) -> None:
    """Mark the outliers, the last two records, and every row that was made from them."""
    for letter, place, offset in (("A", n - 2, (7, 4)), ("B", n - 1, (-14, 4))):
        for x, y in X[record == place].tolist():
            axes.scatter(x, y, s=95, facecolors="none", edgecolors="black", label=FOLLOWED_LABEL)
            style: dict[str, Any] = {"fontsize": 9, "fontweight": "bold"}
            axes.annotate(letter, (x, y), offset, textcoords="offset points", **style)


def draw_grid(left: Axes, right: Axes, example: MethodExample) -> None:
    """Draw two categorical columns, each record at a random place in its cell."""
    true_codes, n = example.before.C[:, 0], example.before.n
    for axes, block in ((left, example.before), (right, example.after)):
        X = block.C + np.column_stack([draw_jitter(n, 0.7), draw_jitter(n, 0.55, seed=1) - 0.08])
        draw_scatter(axes, X, true_codes, TRUE_LABELS)
        mark_followed(axes, X, block.record, n)
        axes.set(xlabel=SMOKES.name, ylabel=EXERCISES.name, xlim=(-0.5, 2.5), ylim=(-0.5, 2.5))
        axes.set_xticks(range(3), SMOKES.categories)
        axes.set_yticks(range(3), EXERCISES.categories)
        for edge in (0.5, 1.5):
            axes.axhline(edge, color=GREY, linewidth=0.6, zorder=0)
            axes.axvline(edge, color=GREY, linewidth=0.6, zorder=0)
        for cell in np.ndindex(3, 3):
            count = int(np.equal(block.C, cell).all(axis=1).sum())
            place = (cell[0] + 0.46, cell[1] + 0.44)
            axes.text(*place, str(count), ha="right", va="top", fontsize=8, color="#404040")


def draw_lanes(left: Axes, right: Axes, example: MethodExample) -> None:
    """Draw one numeric column horizontally and one categorical column vertically."""
    true_codes, n = example.before.C[:, 0], example.before.n
    for axes, block in ((left, example.before), (right, example.after)):
        X = np.column_stack([block.X[:, 0], block.C[:, 0] + draw_jitter(n, 0.62)])
        draw_scatter(axes, X, true_codes, TRUE_LABELS)
        mark_followed(axes, X, block.record, n)
        axes.set(xlabel="x", ylabel=SMOKES.name, ylim=(-0.5, 2.5))
        axes.set_yticks(range(3), SMOKES.categories)
        for edge in (0, 1):
            axes.axvline(edge, color=GREY, linewidth=0.7, zorder=0)
    edges = [edge for axes in (left, right) for edge in axes.get_xlim()]
    for axes in (left, right):
        axes.set_xlim(min(edges), max(edges))


def draw_jitter(n: int, width: float, seed: int = 0) -> Floats:
    """Return random offsets in an interval of some width around 0."""
    places: Floats = width * (np.random.default_rng(seed).random(n) - 0.5)
    return places


def save_figure(example: MethodExample, folder: Path = PICTURE_FOLDER) -> Path:
    """Write the picture with its released values as metadata, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{example.method}.png"
    text = {"Software": None, "Released": json.dumps(example.released_values)}
    draw_figure(example).savefig(path, dpi=150, metadata=text)
    return path


def main() -> None:
    for method in PARAMETERS:
        print(save_figure(run_method(method)))


if __name__ == "__main__":
    main()
