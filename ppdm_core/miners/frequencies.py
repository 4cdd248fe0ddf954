"""True frequencies from random answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ppdm_core.miners._simplex import likeliest
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.release import Public, Response
from ppdm_core.model.schema import Categorical

_MOST_CELLS = 1_000  # a matrix of their square is solved some dozens of times
_ZERO = 1e-6  # a likeliest frequency below this stands at its bound


@dataclass(frozen=True)
class Goodness:
    """A chi-square statistic, and how often chance alone gives one as large."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True)
class Frequencies:
    """How often the true cells occur, from the answers of randomized response.

    For a column with k cells, answer a of true cell t has probability M[t, a]: gamma / (gamma + k -
    1) on the diagonal and 1 / (gamma + k - 1) elsewhere. Columns are answered apart, so that those
    of several columns have the Kronecker product of their matrices. ``estimate`` takes the answers
    of one column, or of two or more to get their joint frequencies.
    """

    responses: tuple[Response, ...]

    @classmethod
    def from_public(cls, public: Public) -> Self:
        if not public.responses:
            raise NotApplicable(f"{public.method} publishes no random answers.")
        return cls(public.responses)

    def estimate(self, answers: Mapping[str, Iterable[object]]) -> Estimated:
        """``answers``: released cells by column name, in the same order of rows; words, and None
        or NaN for a missing one."""
        known = {response.column.name: response for response in self.responses}
        for name in answers:
            if name not in known:
                raise BadInput(
                    f"Column '{name}' holds no random answers.",
                    column=name,
                    remedy=f"Those that do: {', '.join(known)}.",
                )
        responses = tuple(known[name] for name in answers)
        return estimated(_counts(responses, list(answers.values())), responses)


def estimated(counts: ArrayLike, responses: tuple[Response, ...]) -> Estimated:
    """The same from a table of counts with one axis for each column; a missing cell comes last."""
    table = np.asarray(counts, dtype=np.float64)
    shape = tuple(response.column.k for response in responses)
    is_right = table.shape == shape and bool(np.all(table >= 0)) and 0 < table.sum() < math.inf
    if not responses or not is_right or not all(r.gamma > 1 and r.column.k > 1 for r in responses):
        raise BadInput(
            "Frequencies need a count for each combination of cells, and answers with two cells or "
            "more and a gamma above 1.",
            remedy="Count the missing answers, too, if a column has them.",
        )
    if table.size > _MOST_CELLS:
        raise BadInput(
            f"The columns have {table.size:,} combinations of cells; at most {_MOST_CELLS:,} can "
            "be estimated together.",
            remedy="Take fewer columns.",
        )
    return Estimated(table, responses)


@dataclass(frozen=True, eq=False)
class Estimated:
    """Frequencies of the cells of one column, or of the combinations of several, one axis each."""

    counts: Floats  # (k, ...) of the answers
    responses: tuple[Response, ...]

    @property
    def n(self) -> int:
        return round(float(self.counts.sum()))

    @property
    def cells(self) -> tuple[tuple[str | None, ...], ...]:
        """What the places of each axis stand for; None is the missing cell."""
        return tuple(cells_of(response.column) for response in self.responses)

    @cached_property
    def unbiased(self) -> Floats:
        """share M^-1. It may leave 0 to 1, and is then still right on average."""
        return _applied(self.share, [_inverse(response) for response in self.responses])

    @cached_property
    def error(self) -> Floats:
        """Standard error of ``unbiased``, for the frequencies among the released records.

        With B = M^-1 the estimate of cell t is the mean of B[a, t] over the answers a, and B[a, t]
        has mean 1 if t is true and 0 else. So its variance is the mean of B[a, t]^2, less f_t, over
        n; both are put in as estimated, which is unbiased.
        """
        variance = self._squares(self.share) - self.unbiased
        if variance.min() <= 0:  # rare, with few records and several columns
            fitted = self._squares(self.answers_of(self.likeliest)) - self.likeliest
            variance = np.where(variance > 0, variance, fitted)
        return np.asarray(np.sqrt(variance / self.n))

    @cached_property
    def population_error(self) -> Floats:
        """The same for the people whom the records are a random sample of: f (1 - f) / n more."""
        squares = self._squares(self.share)
        return np.asarray(np.sqrt(np.maximum(squares - self.unbiased**2, 0.0) / self.n))

    @cached_property
    def likeliest(self) -> Floats:
        """The frequencies, none below 0 and 1 together, that make the answers likeliest.

        ``unbiased`` itself, unless that has negative ones.
        """
        if self.unbiased.min() >= 0:
            return self.unbiased
        odds: Floats = np.ones((1, 1))
        for response in self.responses:
            odds = np.asarray(np.kron(odds, matrix(response)), dtype=np.float64)
        return likeliest(self.share.ravel(), odds).reshape(self.counts.shape)

    @property
    def share(self) -> Floats:
        return np.asarray(self.counts / self.counts.sum())

    def goodness(self) -> Goodness:
        """Whether any frequencies at all explain the answers: a small p-value says that the
        settings of another release, or other columns, were taken.

        The likelihood ratio against ``likeliest``. Given which z cells are at 0 there, it is about
        chi-square with z degrees at most; with none the answers are explained exactly.
        """
        zero = int(np.sum(self.likeliest < _ZERO))
        used = self.counts > 0
        ratio = self.share[used] / self.answers_of(self.likeliest)[used]
        statistic = max(2.0 * float(self.counts[used] @ np.log(ratio)), 0.0)
        return _judged(statistic, zero)

    def against(self, frequencies: ArrayLike) -> Goodness:
        """Pearson's test that the records are a sample of people with these frequencies."""
        f = np.asarray(frequencies, dtype=np.float64)
        is_right = f.shape == self.counts.shape and bool(np.all(f >= 0))
        if not is_right or not math.isclose(f.sum(), 1.0, abs_tol=1e-6):
            raise BadInput(
                "The frequencies to test must be one for each cell, none below 0, and 1 together.",
                remedy="Give them in the order of 'cells'.",
            )
        expected = self.n * self.answers_of(f)
        return _judged(float(np.sum((self.counts - expected) ** 2 / expected)), f.size - 1)

    def independence(self) -> Goodness:
        """Pearson's test that two columns are independent.

        It needs no correction, only more records than with true cells: M is invertible and the
        columns are answered apart, so answers are independent exactly if the true cells are.
        """
        if self.counts.ndim != 2:
            raise BadInput("Independence needs two columns.", remedy="Estimate them together.")
        lines, columns = (self.counts.sum(axis=axis) for axis in (1, 0))
        lines, columns = lines[lines > 0], columns[columns > 0]
        table = self.counts[np.ix_(self.counts.sum(axis=1) > 0, self.counts.sum(axis=0) > 0)]
        expected = np.outer(lines, columns) / self.n
        degrees = (len(lines) - 1) * (len(columns) - 1)
        return _judged(float(np.sum((table - expected) ** 2 / expected)), degrees)

    def answers_of(self, frequencies: Floats) -> Floats:
        """The shares of answers that true frequencies lead to."""
        return _applied(frequencies, [matrix(response) for response in self.responses])

    def _squares(self, share: Floats) -> Floats:
        return _applied(share, [_inverse(response) ** 2 for response in self.responses])


def cells_of(column: Categorical) -> tuple[str | None, ...]:
    return (*column.categories, None) if column.missing else column.categories


def matrix(response: Response) -> Floats:
    """M[t, a]: the probability of answer a when t is true."""
    k = response.column.k
    return (np.ones((k, k)) + (response.gamma - 1) * np.eye(k)) / (response.gamma + k - 1)


def _inverse(response: Response) -> Floats:
    k, gamma = response.column.k, response.gamma
    return ((gamma + k - 1) * np.eye(k) - np.ones((k, k))) / (gamma - 1)


def _applied(table: Floats, matrices: list[Floats]) -> Floats:
    """The table times the Kronecker product, one axis after the other."""
    for axis, M in enumerate(matrices):
        table = np.moveaxis(np.tensordot(table, M, axes=(axis, 0)), -1, axis)
    return table


def _judged(statistic: float, degrees: int) -> Goodness:
    from scipy.special import gammaincc

    p_value = 1.0 if degrees == 0 else float(gammaincc(degrees / 2, statistic / 2))
    return Goodness(statistic, degrees, p_value)


def _counts(responses: tuple[Response, ...], answers: list[Iterable[Any]]) -> Floats:
    columns = [list(each) for each in answers]
    if len({len(column) for column in columns}) > 1:
        raise BadInput("The columns differ in length.", remedy="Take them from the same rows.")
    places = [
        {cell: i for i, cell in enumerate(cells_of(response.column))} for response in responses
    ]
    counts = np.zeros([response.column.k for response in responses])
    for row, times in Counter(zip(*columns, strict=True)).items():
        where = tuple(
            _place(word, of, response.column.name)
            for word, of, response in zip(row, places, responses, strict=True)
        )
        counts[where] += times
    return counts


def _place(word: object, places: Mapping[str | None, int], name: str) -> int:
    cell = None if _is_missing(word) else word
    if not (cell is None or isinstance(cell, str)) or cell not in places:
        raise BadInput(
            f"Column '{name}' holds a cell that is none of its published categories.",
            column=name,
            remedy="Take the column as it was released, with the manifest of the same release.",
        )
    return places[cell]


def _is_missing(word: object) -> bool:
    is_nan = isinstance(word, float) and math.isnan(word)
    return word is None or is_nan or type(word).__name__ == "NAType"  # pandas'
