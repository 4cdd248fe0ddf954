"""Infer one value of a person from all others, with the help of the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._randomized_responses import ReleasedResponses
from ppdm_core.attacks._row_posterior import RowPosterior, list_posteriors
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import AttackerView, ColumnKind, Estimate, Goal
from ppdm_core.numerics.distances import sort_by_distance
from ppdm_core.numerics.neighbours import find_nearest_rows

_NEIGHBOUR_COUNT = 64
_MAX_EXACT_ROWS = 4_096
_COLUMN_PARTS = 4  # left out of the search together, in larger tables
_MAX_COPY_RATIO = 0.25  # of first to second squared distance, if the first is a copy


@dataclass(frozen=True)
class AttributeInference(Attack):
    """An attacker knows all values of a person but one, and the label, and infers that one.

    Each column in turn, from rows with the person's label. In ``filtered``, the linear estimate of
    least error where map and noise are public, and in the best reconstructions (one; two if
    nothing can be filtered; four if thorough):
    ``nearest`` takes the value of the row that is closest in the other columns;
    ``neighbours`` the value on which most of the 64 closest agree to within epsilon, weighted by
    their likelihood; ``regression`` what a regression on all rows predicts from the other columns;
    ``copy`` the nearest row if it is twice as close as any other, and else the regression.

    With more than 4,096 rows of a label the 64 rows are the closest ones by the columns outside
    the same quarter of the columns, in the order of all columns but the one to infer.

    References: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), on inference by the nearest row;
    Stadler, Oprisanu, Troncoso (2022), on inference by regression.
    """

    name: ClassVar[str] = "attribute_inference"
    story: ClassVar[str] = (
        "An attacker who knows all values of a person but one infers it from the release."
    )
    title: ClassVar[str] = "Knows all values of a person but one"
    goal: ClassVar[Goal] = "infer"
    needs: ClassVar[frozenset[str]] = frozenset({"targets", "reconstructions"})
    reads: ClassVar[frozenset[ColumnKind]] = frozenset({"numeric", "categorical"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        targets = view.targets
        assert targets is not None
        c = len(view.schema.categorical)
        found: dict[str, Floats] = {}
        for code in np.unique(targets.label).tolist():
            who = np.flatnonzero(targets.label == code)
            rows = np.flatnonzero(view.label == code)
            if not len(rows):  # no row has this label
                rows = np.arange(len(view.Y))
            for name, guess in _infer_within_label(view, who, rows).items():
                table = found.setdefault(name, np.zeros((targets.n, targets.X.shape[1] + c)))
                table[who] = guess
        return Estimate(found)


@dataclass(frozen=True, eq=False)
class InferenceTask:
    """The targets of one label and the rows with it; columns are numbered, the responses last."""

    posterior: RowPosterior
    responses: ReleasedResponses
    rows: Codes  # (m, c) released responses
    X: Floats  # (t, d)
    codes: Codes  # (t, c)

    @property
    def column_count(self) -> int:
        """Number of numeric and released categorical columns."""
        return int(self.X.shape[1]) + len(self.responses)

    def place_points(self, known: Ints) -> tuple[Floats, Floats]:
        """Place targets and rows by these columns: squared distances are minus log likelihoods."""
        d = self.X.shape[1]
        numbers, words = known[known < d], known[known >= d] - d
        one, two = self.posterior.place_points(self.X[:, numbers], numbers)
        points = (
            self.responses.place_points(self.codes, words),
            self.responses.place_points(self.rows, words),
        )
        return np.hstack([one, points[0]]), np.hstack([two, points[1]])

    def iterate_neighbours(self) -> Iterator[tuple[int, Ints, Floats]]:
        """Yield each column with the closest rows by the others and their distances; (t, k).

        The closest row comes first.
        """
        large = len(self.rows) > _MAX_EXACT_ROWS and self.column_count > _COLUMN_PARTS
        parts = np.array_split(
            np.arange(self.column_count), _COLUMN_PARTS if large else self.column_count
        )
        for part in parts:
            place, square = find_nearest_rows(
                *self.place_points(drop_columns(self.column_count, part)), _NEIGHBOUR_COUNT
            )
            for column in part.tolist():
                if len(part) == 1:
                    yield column, place, square
                    continue
                points = self.place_points(drop_columns(self.column_count, column))
                yield column, *sort_by_distance(*points, place)

    def predict_values(self, column: int, place: Ints) -> Floats:
        """Return what each row says about the column, given the others; (t, k)."""
        d = self.X.shape[1]
        if column >= d:
            return np.asarray(self.rows[place, column - d], dtype=np.float64)
        others = drop_columns(d, column)
        V = self.posterior.covariance
        slope = np.linalg.solve(V[np.ix_(others, others)], V[others, column])
        mean = self.posterior.mean
        level = mean[:, column] - mean[:, others] @ slope  # (m,)
        return np.asarray(level[place] + (self.X[:, others] @ slope)[:, None])


def _infer_within_label(view: AttackerView, who: Ints, rows: Ints) -> dict[str, Floats]:
    """Return the candidates for the targets of one label."""
    assert view.targets is not None
    responses = ReleasedResponses.from_view(view)
    X, C = view.targets.X[who], responses.select_codes(view.targets)[who]
    d, c = X.shape[1], len(view.schema.categorical)
    low, high = view.schema.lows, view.schema.highs
    slack = np.concatenate([view.epsilon * view.schema.widths, np.zeros(len(responses))])
    output = np.concatenate([np.arange(d), d + responses.place])  # columns of the estimate
    found = {}
    for name, posterior in list_posteriors(view, rows).items():
        task = InferenceTask(posterior, responses, responses.rows[rows], X, C)
        guess = {way: np.zeros((len(who), d + c)) for way in ("nearest", "neighbours", "copy")}
        guess["regression"] = np.zeros((len(who), d + c))
        guess["regression"][:, output] = predict_by_regression(task)
        for column, place, square in task.iterate_neighbours():
            values, at = task.predict_values(column, place), output[column]
            weight = np.exp(square[:, :1] - square)
            guess["nearest"][:, at] = values[:, 0]
            guess["neighbours"][:, at] = vote_on_values(values, weight, float(slack[column]))
            is_copy = (
                square[:, 0] <= _MAX_COPY_RATIO * square[:, 1] if square.shape[1] > 1 else True
            )
            guess["copy"][:, at] = np.where(is_copy, values[:, 0], guess["regression"][:, at])
        for way, table in guess.items():
            table[:, :d] = np.clip(table[:, :d], low, high)
            found[f"{way}:{name}"] = table
    return found


def vote_on_values(values: Floats, weight: Floats, slack: float) -> Floats:
    """Return of each line the value with most weight within ``slack`` of it, (t,)."""
    near = np.abs(values[:, :, None] - values[:, None, :]) <= slack
    votes = np.einsum("ijk,ik->ij", near, weight)
    best = votes.argmax(axis=1)[:, None]
    return np.asarray(np.take_along_axis(values, best, axis=1)[:, 0])


def predict_by_regression(task: InferenceTask) -> Floats:
    """Return each column predicted from the others, by the covariance of all rows; (t, columns).

    A category is the one whose indicator gets the largest value.
    """
    d = task.X.shape[1]
    blocks = [(task.X[:, [j]], task.posterior.mean[:, [j]]) for j in range(d)]
    for j, size in enumerate(task.responses.sizes.tolist()):
        cells = np.arange(-1, size)
        blocks.append((task.codes[:, [j]] == cells, task.rows[:, [j]] == cells))
    persons = np.hstack([one for one, _ in blocks]).astype(np.float64)
    rows = np.hstack([two for _, two in blocks]).astype(np.float64)
    mean = rows.mean(axis=0)
    S = (rows - mean).T @ (rows - mean) / len(rows)
    if task.posterior.is_filtered:  # records vary more than filtered estimates
        S[:d, :d] += task.posterior.covariance
    q = len(S)
    S += np.diag((1e-9 + q / len(rows) / 10) * np.diag(S) + 1e-12)
    ends = np.cumsum([0, *(one.shape[1] for one, _ in blocks)])
    guess = np.empty((len(persons), len(blocks)))
    for j in range(len(blocks)):
        own = np.arange(ends[j], ends[j + 1])
        others = drop_columns(q, own)
        slope = np.linalg.solve(S[np.ix_(others, others)], S[np.ix_(others, own)])
        expected = mean[own] + (persons[:, others] - mean[others]) @ slope
        guess[:, j] = expected[:, 0] if j < d else expected.argmax(axis=1) - 1
    return guess


def drop_columns(n: int, columns: int | Ints) -> Ints:
    """Return the numbers 0 to n - 1 without these columns."""
    return np.delete(np.arange(n), columns)
