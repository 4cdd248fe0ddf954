"""True frequencies from randomized responses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ppdm_core.miners._simplex import maximize_likelihood
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical

_MAX_CELLS = 1_000  # a matrix of this size is solved some dozens of times
_ZERO_FREQUENCY = 1e-6  # below this a maximum-likelihood frequency counts as 0


@dataclass(frozen=True)
class ChiSquareTest:
    """A chi-square statistic, its degrees of freedom, and its p-value."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True)
class Frequencies:
    """Estimates of the frequencies of true cells from randomized responses.

    For a column with k cells, response a of true cell t has the probability M[t, a]: gamma /
    (gamma + k - 1) on the diagonal and 1 / (gamma + k - 1) elsewhere. Columns are randomized
    independently, so the matrix of several columns is the Kronecker product of their matrices.
    ``estimate`` takes the responses of one column, or of several for their joint frequencies.
    """

    responses: tuple[Response, ...]

    @classmethod
    def from_public(cls, public: PublicParameters) -> Self:
        """Return the miner for a release with randomized responses."""
        if not public.responses:
            raise NotApplicable(f"{public.method} publishes no randomized responses.")
        return cls(public.responses)

    def estimate(self, answers: Mapping[str, Iterable[object]]) -> FrequencyEstimate:
        """Return the estimate for released cells.

        ``answers``: cells by column name, in the same order of rows: strings, and None or NaN for
        a missing cell.
        """
        known = {response.column.name: response for response in self.responses}
        for name in answers:
            if name not in known:
                raise BadInput(
                    f"Column '{name}' holds no randomized responses.",
                    column=name,
                    remedy=f"Columns with randomized responses: {', '.join(known)}.",
                )
        responses = tuple(known[name] for name in answers)
        return estimate_from_counts(_count_responses(responses, list(answers.values())), responses)


def estimate_from_counts(counts: ArrayLike, responses: tuple[Response, ...]) -> FrequencyEstimate:
    """Return the estimate for counts with one axis for each column; missing cells come last."""
    table = np.asarray(counts, dtype=np.float64)
    shape = tuple(response.column.k for response in responses)
    is_right = table.shape == shape and bool(np.all(table >= 0)) and 0 < table.sum() < math.inf
    if not responses or not is_right or not all(r.gamma > 1 and r.column.k > 1 for r in responses):
        raise BadInput(
            "Frequencies need a count for each combination of cells, and responses with two or "
            "more cells and a gamma above 1.",
            remedy="If a column has missing cells, count them, too.",
        )
    if table.size > _MAX_CELLS:
        raise BadInput(
            f"The columns have {table.size:,} combinations of cells; at most {_MAX_CELLS:,} can "
            "be estimated together.",
            remedy="Use fewer columns.",
        )
    return FrequencyEstimate(table, responses)


@dataclass(frozen=True, eq=False)
class FrequencyEstimate:
    """Frequencies of the cells of one column, or of combinations of several, one axis each."""

    counts: Floats  # (k, ...) of the responses
    responses: tuple[Response, ...]

    @property
    def n(self) -> int:
        return round(float(self.counts.sum()))

    @property
    def cells(self) -> tuple[tuple[str | None, ...], ...]:
        """Cells at the places of each axis; None is the missing cell."""
        return tuple(list_cells(response.column) for response in self.responses)

    @cached_property
    def unbiased(self) -> Floats:
        """share M^-1. Values may be outside 0 to 1, and are unbiased nevertheless."""
        return _apply_matrices(
            self.share, [_invert_matrix(response) for response in self.responses]
        )

    @cached_property
    def error(self) -> Floats:
        """Standard error of ``unbiased``, for the frequencies among the released records.

        With B = M^-1 the estimate of cell t is the mean of B[a, t] over the responses a, and
        B[a, t] has mean 1 if t is true and 0 otherwise. So its variance is the mean of B[a, t]^2,
        minus f_t, over n; both are replaced by their estimates, which is unbiased.
        """
        variance = self._average_squares(self.share) - self.unbiased
        if variance.min() <= 0:  # rare, with few records and several columns
            fitted = self._average_squares(self.expect_responses(self.likeliest)) - self.likeliest
            variance = np.where(variance > 0, variance, fitted)
        return np.asarray(np.sqrt(variance / self.n))

    @cached_property
    def population_error(self) -> Floats:
        """Standard error for the population that the records sample: f (1 - f) / n is added."""
        squares = self._average_squares(self.share)
        return np.asarray(np.sqrt(np.maximum(squares - self.unbiased**2, 0.0) / self.n))

    @cached_property
    def likeliest(self) -> Floats:
        """Maximum-likelihood frequencies: at least 0, with sum 1.

        Equal to ``unbiased`` unless that has negative values.
        """
        if self.unbiased.min() >= 0:
            return self.unbiased
        odds: Floats = np.ones((1, 1))
        for response in self.responses:
            odds = np.asarray(np.kron(odds, response_matrix(response)), dtype=np.float64)
        return maximize_likelihood(self.share.ravel(), odds).reshape(self.counts.shape)

    @property
    def share(self) -> Floats:
        return np.asarray(self.counts / self.counts.sum())

    def goodness(self) -> ChiSquareTest:
        """Test whether any frequencies explain the responses.

        A small p-value means that the settings of another release, or other columns, were used.
        The likelihood ratio against ``likeliest``. Given which z cells are 0 there, it is roughly
        chi-square with at most z degrees; with none the responses are explained exactly.
        """
        zero = int(np.sum(self.likeliest < _ZERO_FREQUENCY))
        used = self.counts > 0
        ratio = self.share[used] / self.expect_responses(self.likeliest)[used]
        statistic = max(2.0 * float(self.counts[used] @ np.log(ratio)), 0.0)
        return _test_chi_square(statistic, zero)

    def against(self, frequencies: ArrayLike) -> ChiSquareTest:
        """Test (Pearson) that the records are a sample of a population with these frequencies."""
        f = np.asarray(frequencies, dtype=np.float64)
        is_right = f.shape == self.counts.shape and bool(np.all(f >= 0))
        if not is_right or not math.isclose(f.sum(), 1.0, abs_tol=1e-6):
            raise BadInput(
                "The frequencies to test must be one for each cell, at least 0, with sum 1.",
                remedy="Give them in the order of 'cells'.",
            )
        expected = self.n * self.expect_responses(f)
        return _test_chi_square(float(np.sum((self.counts - expected) ** 2 / expected)), f.size - 1)

    def independence(self) -> ChiSquareTest:
        """Test (Pearson) that two columns are independent.

        It needs no correction, only more records than with true cells: M is invertible and the
        columns are randomized independently, so responses are independent exactly if the true
        cells are.
        """
        if self.counts.ndim != 2:
            raise BadInput("Independence needs two columns.", remedy="Estimate them together.")
        lines, columns = (self.counts.sum(axis=axis) for axis in (1, 0))
        lines, columns = lines[lines > 0], columns[columns > 0]
        table = self.counts[np.ix_(self.counts.sum(axis=1) > 0, self.counts.sum(axis=0) > 0)]
        expected = np.outer(lines, columns) / self.n
        degrees = (len(lines) - 1) * (len(columns) - 1)
        return _test_chi_square(float(np.sum((table - expected) ** 2 / expected)), degrees)

    def expect_responses(self, frequencies: Floats) -> Floats:
        """Return the expected shares of responses for given true frequencies."""
        return _apply_matrices(
            frequencies, [response_matrix(response) for response in self.responses]
        )

    def _average_squares(self, share: Floats) -> Floats:
        return _apply_matrices(
            share, [_invert_matrix(response) ** 2 for response in self.responses]
        )


def list_cells(column: Categorical) -> tuple[str | None, ...]:
    """Return the categories of a column, and None if cells may be missing."""
    return (*column.categories, None) if column.missing else column.categories


def response_matrix(response: Response) -> Floats:
    """Return M[t, a]: the probability of response a if t is true."""
    k = response.column.k
    return (np.ones((k, k)) + (response.gamma - 1) * np.eye(k)) / (response.gamma + k - 1)


def _invert_matrix(response: Response) -> Floats:
    k, gamma = response.column.k, response.gamma
    return ((gamma + k - 1) * np.eye(k) - np.ones((k, k))) / (gamma - 1)


def _apply_matrices(table: Floats, matrices: list[Floats]) -> Floats:
    """Return the table times the Kronecker product, one axis after the other."""
    for axis, M in enumerate(matrices):
        table = np.moveaxis(np.tensordot(table, M, axes=(axis, 0)), -1, axis)
    return table


def _test_chi_square(statistic: float, degrees: int) -> ChiSquareTest:
    from scipy.special import gammaincc

    p_value = 1.0 if degrees == 0 else float(gammaincc(degrees / 2, statistic / 2))
    return ChiSquareTest(statistic, degrees, p_value)


def _count_responses(responses: tuple[Response, ...], answers: list[Iterable[Any]]) -> Floats:
    columns = [list(each) for each in answers]
    if len({len(column) for column in columns}) > 1:
        raise BadInput("The columns differ in length.", remedy="Use columns of the same rows.")
    places = [
        {cell: i for i, cell in enumerate(list_cells(response.column))} for response in responses
    ]
    counts = np.zeros([response.column.k for response in responses])
    for row, times in Counter(zip(*columns, strict=True)).items():
        where = tuple(
            _find_place(word, of, response.column.name)
            for word, of, response in zip(row, places, responses, strict=True)
        )
        counts[where] += times
    return counts


def _find_place(word: object, places: Mapping[str | None, int], name: str) -> int:
    cell = None if _is_missing(word) else word
    if not (cell is None or isinstance(cell, str)) or cell not in places:
        raise BadInput(
            f"Column '{name}' holds a cell that is not one of its published categories.",
            column=name,
            remedy="Use the column as released, with the manifest of the same release.",
        )
    return places[cell]


def _is_missing(word: object) -> bool:
    is_nan = isinstance(word, float) and math.isnan(word)
    return word is None or is_nan or type(word).__name__ == "NAType"  # pandas'
