"""Say something that is true for one person only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._randomized_responses import Answers
from ppdm_core.attacks._row_posterior import (
    LAST_DIGITS,
    Belief,
    as_released,
    can_filter,
    filtered,
    found_again,
    tables,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import Attack, AttackerView, Estimate, Goal
from ppdm_core.model.policy import Effort
from ppdm_core.numerics.distances import row_slices

STATEMENTS: dict[Effort, int] = {"quick": 200, "standard": 500, "thorough": 2_000}
_TRIED = 4  # rows for each statement
_ERRORS = 3.0  # of which hardly anything is farther off
_SURE = 0.9  # probability of a true answer that is worth a condition


@dataclass(frozen=True)
class SinglingOut(Attack):
    """Somebody makes statements that fit one released row, hoping that they fit one person.

    ``univariate``: the values of one column that lie farthest from all others, each with half the
    gap around it, and beyond the least and the largest without an end; labels and answers that
    only one row has. ``exact``: the values of one column that only one row has, each to the last
    digits; of the column in which most known records are found again, else of the one with the
    most values. ``multivariate``: a box around a row, in all columns and with its label, that
    no other row of this label is in; ``half`` the same in half of the columns, drawn at random for
    each label. Answers join a box if they are true with 90 %, or if there is nothing else.

    Where map and noise are public, the noise is filtered out first, and a box reaches to the
    nearest other row, but not beyond three times the error that is left. Otherwise the best guess
    of the original columns is used, and a box reaches half as far as the nearest other row, in
    units of the columns' ranges. 200 statements each (quick), 500 (standard) or 2,000 (thorough),
    of the loneliest rows among four times as many.

    References: Cohen, Nissim (2020), on singling out; Giomi, Boenisch, Wehmeyer, Tasnadi (2023),
    on such statements from releases, against a control group.
    """

    name: ClassVar[str] = "singling_out"
    story: ClassVar[str] = "Somebody makes statements from lonely rows of the release."
    goal: ClassVar[Goal] = "single_out"
    needs: ClassVar[frozenset[str]] = frozenset({"reconstructions"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        d = len(view.schema.numeric)
        most = STATEMENTS[view.effort]
        tried = rng.permutation(len(view.Y))[: _TRIED * most]
        X_hat = next(iter(tables(view).values())) if d else view.Y[:, :0]
        belief = filtered(view, np.arange(len(view.Y))) if can_filter(view) else None
        guess = Guess.of(view, X_hat, belief)
        found = {
            "univariate": univariate(view, X_hat, most),
            "multivariate": boxes(view, guess, tried, d, most, rng),
        }
        clear = as_released(view)
        if d and clear is not None:
            found["exact"] = exact(view, clear, most, rng)
        if d > 2:
            found["half"] = boxes(view, guess, tried, (d + 1) // 2, most, rng)
        return Estimate(found)


@dataclass(frozen=True, eq=False)
class Guess:
    """The original columns, the unit of each, and how far a box reaches for a gap of 1."""

    X: Floats  # (m, d)
    unit: Floats  # (d,)
    share: float  # of the gap
    most: float  # in units

    @classmethod
    def of(cls, view: AttackerView, X_hat: Floats, belief: Belief | None) -> Guess:
        if belief is None:
            widths = view.schema.widths
            return cls(X_hat, np.where(widths > 0, widths, 1.0), 0.5, np.inf)
        X = np.clip(belief.mean, view.schema.lows, view.schema.highs)
        return cls(X, np.sqrt(np.diag(belief.covariance)), 1.0 - 1e-6, _ERRORS)


def everything(view: AttackerView, p: int) -> Floats:
    """(p, d + c + 1, 2) statements that exclude nobody."""
    columns = len(view.schema.numeric) + len(view.schema.categorical) + 1
    return np.tile([-np.inf, np.inf], (p, columns, 1))


def boxes(
    view: AttackerView, guess: Guess, tried: Ints, k: int, most: int, rng: np.random.Generator
) -> Floats:
    """Around those of the tried rows that are loneliest in k columns."""
    d = guess.X.shape[1]
    F = guess.X / guess.unit
    gap, known = np.zeros(len(tried)), np.zeros((len(tried), d), dtype=np.bool_)
    for code in np.unique(view.label).tolist():
        mine, rows = np.flatnonzero(view.label[tried] == code), np.flatnonzero(view.label == code)
        columns = np.sort(rng.permutation(d)[:k])
        known[np.ix_(mine, columns)] = True
        gap[mine] = gaps(F, tried[mine], rows, columns)
    answers = Answers.of(view)
    if not d:
        gap = lonely_answers(view, answers)[tried].astype(np.float64)
    keep = np.argsort(-gap, kind="stable")[:most]
    keep = keep[gap[keep] > 0] if gap.any() else keep[:1]
    chosen = tried[keep]
    statements = everything(view, len(keep))
    half = np.minimum(gap[keep] * guess.share, guess.most)
    reach = np.where(known[keep], half[:, None] * guess.unit, np.inf)
    statements[:, :d, 0], statements[:, :d, 1] = guess.X[chosen] - reach, guess.X[chosen] + reach
    for j, place in enumerate(answers.place.tolist()):
        kept = np.exp(answers.weight[j]) / (np.exp(answers.weight[j]) + answers.sizes[j] - 1)
        if kept >= _SURE or not d:
            statements[:, d + place, :] = answers.rows[chosen, j][:, None]
    statements[:, -1, :] = view.label[chosen][:, None]
    return statements


def gaps(F: Floats, asked: Ints, rows: Ints, columns: Ints) -> Floats:
    """Largest difference over the columns to the nearest other row, for each row asked about."""
    from scipy.spatial.distance import cdist

    B = F[np.ix_(rows, columns)]
    found = np.full(len(asked), np.inf)
    place = np.searchsorted(rows, asked)
    for part in row_slices(len(asked), len(rows)):
        D = cdist(F[np.ix_(asked[part], columns)], B, "chebyshev")
        D[np.arange(len(D)), place[part]] = np.inf
        found[part] = D.min(axis=1)
    return found


def lonely_answers(
    view: AttackerView, answers: Answers
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows that share their answers and label with no other."""
    told = np.column_stack([answers.rows, view.label])
    _, which, count = np.unique(told, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(count[which.ravel()] == 1)


def univariate(view: AttackerView, X_hat: Floats, most: int) -> Floats:
    d = X_hat.shape[1]
    found = [_rare_words(view)]
    for j in range(d):
        value = np.unique(X_hat[:, j], return_counts=True)
        found.append(_lonely_values(view, j, *value, most // max(d, 1) + 1))
    statements = np.concatenate(found)[:most]
    return statements if len(statements) else everything(view, 1)


def _lonely_values(
    view: AttackerView, column: int, value: Floats, count: Ints, most: int
) -> Floats:
    """Around the values that one row has and that are farthest from others."""
    if len(value) < 2:
        return everything(view, 0)
    step = np.diff(value)
    before, after = np.concatenate([step[:1], step]), np.concatenate([step, step[-1:]])
    gap = np.where(count == 1, np.minimum(before, after), 0.0)
    keep = np.argsort(-gap, kind="stable")[:most]
    keep = keep[gap[keep] > 0]
    statements = everything(view, len(keep))
    low, high = value - gap / 2, value + gap / 2
    low[0], high[-1] = -np.inf, np.inf
    statements[:, column, 0], statements[:, column, 1] = low[keep], high[keep]
    return statements


def exact(view: AttackerView, X_hat: Floats, most: int, rng: np.random.Generator) -> Floats:
    column = _clearest(view, X_hat)
    slack = LAST_DIGITS * view.schema.widths
    value, count = np.unique(X_hat[:, column], return_counts=True)
    value = rng.permutation(value[count == 1])[:most]
    statements = everything(view, max(len(value), 1))
    if len(value):
        statements[:, column, 0], statements[:, column, 1] = value, value
        statements[:, column] += [-slack[column], slack[column]]
    return statements


def _clearest(view: AttackerView, X_hat: Floats) -> int:
    values = np.array([len(np.unique(column)) for column in X_hat.T])
    if view.records is None or not len(view.records):
        return int(values.argmax())
    hits = found_again(view, view.records, X_hat).mean(axis=0)
    return int(np.lexsort((values, hits))[-1])


def _rare_words(view: AttackerView) -> Floats:
    """Labels and answers of one row."""
    answers = Answers.of(view)
    d = len(view.schema.numeric)
    columns = [(d + place, answers.rows[:, j]) for j, place in enumerate(answers.place.tolist())]
    found = [everything(view, 0)]
    for column, codes in [*columns, (-1, view.label)]:
        value, count = np.unique(codes, return_counts=True)
        statements = everything(view, int((count == 1).sum()))
        statements[:, column, :] = value[count == 1][:, None]
        found.append(statements)
    return np.concatenate(found)
