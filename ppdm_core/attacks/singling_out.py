"""Make statements that are true for one person only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._randomized_responses import ReleasedResponses
from ppdm_core.attacks._row_posterior import (
    RELATIVE_ROUNDING,
    RowPosterior,
    can_filter,
    filter_noise,
    find_verbatim_values,
    list_reconstructions,
    read_noisy_columns,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.model.policy import Effort
from ppdm_core.numerics.distances import row_slices

MAX_STATEMENTS: dict[Effort, int] = {"quick": 200, "standard": 500, "thorough": 2_000}
_ROWS_PER_STATEMENT = 4
_MAX_STANDARD_ERRORS = 3.0  # hardly any value is farther away
_MIN_TRUE_PROBABILITY = 0.9  # of a true response, to add it as a condition


@dataclass(frozen=True)
class SinglingOut(Attack):
    """An attacker makes statements that fit one released row, expecting that they fit one person.

    ``univariate``: the values of one column that lie farthest from all others, each with half the
    gap around it, and beyond the least and the largest without an end; labels and responses that
    only one row has. ``exact``: the values of one column that only one row has, each to the last
    digits; of the column in which most known records are found again, else of the one with the
    most values. ``multivariate``: a box around a row, in all columns and with its label, that
    no other row of this label is in; ``half`` the same in half of the columns, drawn at random for
    each label. Responses are added to a box if they are true with 90 %, or if it has nothing else.

    Where map and noise are public, the noise is filtered out first, and a box reaches to the
    nearest other row, but not beyond three times the remaining error. Otherwise the best estimate
    of the original columns is used, and a box reaches half as far as the nearest other row, in
    units of the columns' ranges. 200 statements each (quick), 500 (standard) or 2,000 (thorough),
    of the most isolated rows among four times as many.

    References: Cohen, Nissim (2020), on singling out; Giomi, Boenisch, Wehmeyer, Tasnadi (2023),
    on such statements from releases, against a control group.
    """

    name: ClassVar[str] = "singling_out"
    story: ClassVar[str] = "An attacker makes statements from isolated rows of the release."
    title: ClassVar[str] = "Describes exactly one person"
    goal: ClassVar[Goal] = "single_out"
    needs: ClassVar[frozenset[str]] = frozenset({"reconstructions"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        d = len(view.schema.numeric)
        most = MAX_STATEMENTS[view.effort]
        tried = rng.permutation(len(view.Y))[: _ROWS_PER_STATEMENT * most]
        X_hat = next(iter(list_reconstructions(view).values())) if d else view.Y[:, :0]
        posterior = filter_noise(view, np.arange(len(view.Y))) if can_filter(view) else None
        estimate = ColumnEstimate.from_view(view, X_hat, posterior)
        found = {
            "univariate": make_univariate(view, X_hat, most),
            "multivariate": make_boxes(view, estimate, tried, d, most, rng),
        }
        noisy = read_noisy_columns(view)
        if d and noisy is not None:
            found["exact"] = make_exact(view, noisy, most, rng)
        if d > 2:
            found["half"] = make_boxes(view, estimate, tried, (d + 1) // 2, most, rng)
        return Estimate(found)


@dataclass(frozen=True, eq=False)
class ColumnEstimate:
    """The original columns, the unit of each, and how far a box reaches for a gap of 1."""

    X: Floats  # (m, d)
    unit: Floats  # (d,)
    share: float  # of the gap
    most: float  # in units

    @classmethod
    def from_view(
        cls, view: AttackerView, X_hat: Floats, posterior: RowPosterior | None
    ) -> ColumnEstimate:
        """Take the posterior where there is one, else the reconstruction."""
        if posterior is None:
            widths = view.schema.widths
            return cls(X_hat, np.where(widths > 0, widths, 1.0), 0.5, np.inf)
        X = np.clip(posterior.mean, view.schema.lows, view.schema.highs)
        return cls(X, np.sqrt(np.diag(posterior.covariance)), 1.0 - 1e-6, _MAX_STANDARD_ERRORS)


def make_open_statements(view: AttackerView, p: int) -> Floats:
    """Return statements that exclude no record, (p, d + c + 1, 2)."""
    columns = len(view.schema.numeric) + len(view.schema.categorical) + 1
    return np.tile([-np.inf, np.inf], (p, columns, 1))


def make_boxes(
    view: AttackerView,
    estimate: ColumnEstimate,
    tried: Ints,
    k: int,
    most: int,
    rng: np.random.Generator,
) -> Floats:
    """Return boxes around those of the tried rows that are most isolated in k columns."""
    d = estimate.X.shape[1]
    F = estimate.X / estimate.unit
    gap, known = np.zeros(len(tried)), np.zeros((len(tried), d), dtype=np.bool_)
    for code in np.unique(view.label).tolist():
        mine, rows = np.flatnonzero(view.label[tried] == code), np.flatnonzero(view.label == code)
        columns = np.sort(rng.permutation(d)[:k])
        known[np.ix_(mine, columns)] = True
        gap[mine] = measure_gaps(F, tried[mine], rows, columns)
    responses = ReleasedResponses.from_view(view)
    if not d:
        gap = find_unique_responses(view, responses)[tried].astype(np.float64)
    keep = np.argsort(-gap, kind="stable")[:most]
    keep = keep[gap[keep] > 0] if gap.any() else keep[:1]
    chosen = tried[keep]
    statements = make_open_statements(view, len(keep))
    half = np.minimum(gap[keep] * estimate.share, estimate.most)
    reach = np.where(known[keep], half[:, None] * estimate.unit, np.inf)
    statements[:, :d, 0], statements[:, :d, 1] = (
        estimate.X[chosen] - reach,
        estimate.X[chosen] + reach,
    )
    for j, place in enumerate(responses.place.tolist()):
        kept = np.exp(responses.weight[j]) / (np.exp(responses.weight[j]) + responses.sizes[j] - 1)
        if kept >= _MIN_TRUE_PROBABILITY or not d:
            statements[:, d + place, :] = responses.rows[chosen, j][:, None]
    statements[:, -1, :] = view.label[chosen][:, None]
    return statements


def measure_gaps(F: Floats, asked: Ints, rows: Ints, columns: Ints) -> Floats:
    """Return for each row asked the gap to the nearest other row: the largest over the columns."""
    from scipy.spatial.distance import cdist

    B = F[np.ix_(rows, columns)]
    found = np.full(len(asked), np.inf)
    place = np.searchsorted(rows, asked)
    for part in row_slices(len(asked), len(rows)):
        D = cdist(F[np.ix_(asked[part], columns)], B, "chebyshev")
        D[np.arange(len(D)), place[part]] = np.inf
        found[part] = D.min(axis=1)
    return found


def find_unique_responses(
    view: AttackerView, responses: ReleasedResponses
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows share their responses and label with no other row."""
    codes = np.column_stack([responses.rows, view.label])
    _, which, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(count[which.ravel()] == 1)


def make_univariate(view: AttackerView, X_hat: Floats, most: int) -> Floats:
    """Return statements about single columns: rare categories, and values far from all others."""
    d = X_hat.shape[1]
    found = [_make_category_statements(view)]
    for j in range(d):
        value = np.unique(X_hat[:, j], return_counts=True)
        found.append(_make_value_statements(view, j, *value, most // max(d, 1) + 1))
    statements = np.concatenate(found)[:most]
    return statements if len(statements) else make_open_statements(view, 1)


def _make_value_statements(
    view: AttackerView, column: int, value: Floats, count: Ints, most: int
) -> Floats:
    """Return statements around the values that one row has and that are farthest from others."""
    if len(value) < 2:
        return make_open_statements(view, 0)
    step = np.diff(value)
    before, after = np.concatenate([step[:1], step]), np.concatenate([step, step[-1:]])
    gap = np.where(count == 1, np.minimum(before, after), 0.0)
    keep = np.argsort(-gap, kind="stable")[:most]
    keep = keep[gap[keep] > 0]
    statements = make_open_statements(view, len(keep))
    low, high = value - gap / 2, value + gap / 2
    low[0], high[-1] = -np.inf, np.inf
    statements[:, column, 0], statements[:, column, 1] = low[keep], high[keep]
    return statements


def make_exact(view: AttackerView, X_hat: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Return statements about exact values that one row has, in the clearest column."""
    column = _find_clearest_column(view, X_hat)
    slack = RELATIVE_ROUNDING * view.schema.widths
    value, count = np.unique(X_hat[:, column], return_counts=True)
    value = rng.permutation(value[count == 1])[:most]
    statements = make_open_statements(view, max(len(value), 1))
    if len(value):
        statements[:, column, 0], statements[:, column, 1] = value, value
        statements[:, column] += [-slack[column], slack[column]]
    return statements


def _find_clearest_column(view: AttackerView, X_hat: Floats) -> int:
    """Return the column in which most known records are found, else the one with most values."""
    values = np.array([len(np.unique(column)) for column in X_hat.T])
    if view.records is None or not len(view.records):
        return int(values.argmax())
    hits = find_verbatim_values(view, view.records, X_hat).mean(axis=0)
    return int(np.lexsort((values, hits))[-1])


def _make_category_statements(view: AttackerView) -> Floats:
    """Return statements about labels and responses that one row has."""
    responses = ReleasedResponses.from_view(view)
    d = len(view.schema.numeric)
    columns = [
        (d + place, responses.rows[:, j]) for j, place in enumerate(responses.place.tolist())
    ]
    found = [make_open_statements(view, 0)]
    for column, codes in [*columns, (-1, view.label)]:
        value, count = np.unique(codes, return_counts=True)
        statements = make_open_statements(view, int((count == 1).sum()))
        statements[:, column, :] = value[count == 1][:, None]
        found.append(statements)
    return np.concatenate(found)
