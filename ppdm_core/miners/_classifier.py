"""Base class of the classifiers, and checks of their parameters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.linear_map import noise_variance


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier made of two steps.

    ``_learn`` takes the released rows and the codes of their labels. ``_compute_votes`` returns for
    each query a number of at least 0 for each class, not all of them 0. The class with the largest
    vote wins; of equal ones, the first in sorted order.
    """

    classes_: NDArray[Any]

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from released rows ``X``, in components if a map is published, and their labels."""
        self._check_parameters()
        rows, labels = validate_data(
            self, replace_missing(X), y, dtype=np.float64, ensure_all_finite=False
        )
        check_finite_rows(self, rows)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._learn(rows, codes.astype(np.int64))
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most likely class of each record; ``X``: records without noise."""
        votes = self._compute_votes(self._check_queries(X))
        labels: NDArray[Any] = self.classes_[votes.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the share of each class in the votes."""
        votes = self._compute_votes(self._check_queries(X))
        shares: Floats = votes / votes.sum(axis=1, keepdims=True)
        return shares

    def _check_queries(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return read_rows(self, X, reset=False)

    def _check_parameters(self) -> None:
        """Check the parameters, which scikit-learn requires at the start of a fit only."""

    @abstractmethod
    def _learn(self, X: Floats, codes: Ints) -> None: ...

    @abstractmethod
    def _compute_votes(self, X: Floats) -> Floats: ...


def read_rows(owner: Any, X: ArrayLike, *, reset: bool) -> Floats:
    """Return rows as finite numbers; ``reset``: they decide which columns later rows must have."""
    rows: Floats = validate_data(
        owner, replace_missing(X), dtype=np.float64, reset=reset, ensure_all_finite=False
    )
    check_finite_rows(owner, rows)
    return rows


def replace_missing(X: Any) -> Any:
    """Return a data frame with NaN in place of pandas' NA, which is no number; else the same."""
    return X.where(X.notna(), np.nan) if hasattr(X, "notna") else X


def check_finite_rows(owner: Any, X: Floats) -> None:
    """Raise ValueError, as scikit-learn asks for, if a cell is NaN or infinite."""
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        row, column = bad[0].tolist()
        names = getattr(owner, "feature_names_in_", None)
        raise ValueError(
            f"There are NaN or infinite cells in {len(np.unique(bad[:, 0])):,} of {len(X):,} rows, "
            f"first in row {row + 1}, column {column + 1 if names is None else repr(names[column])}"
            ". Leave such rows out, or fill the cells."
        )


def check_parameter(is_right: bool, owner: object, name: str, wanted: str) -> None:
    """Raise ValueError, in one wording for all miners, if a parameter is not right."""
    if not is_right:
        got = getattr(owner, name)
        raise ValueError(
            f"The '{name}' parameter of {type(owner).__name__} must be {wanted}. Got {got!r}."
        )


def read_noise_variance(owner: Any, columns: int) -> Floats | None:
    """Return the 'noise_variance' parameter as an array, None if it is not given."""
    if owner.noise_variance is None:
        return None
    noise = np.asarray(owner.noise_variance, dtype=np.float64)
    is_right = noise.shape == (columns,) and bool(np.all(noise > 0) and np.all(noise < np.inf))
    check_parameter(
        is_right, owner, "noise_variance", f"{columns} numbers above 0, one for each column"
    )
    return noise


def find_noise_variance(public: PublicParameters) -> Floats | None:
    """Return the variance of the published noise in each component; None if there is none."""
    try:
        return noise_variance(public)
    except NotApplicable:
        return None
