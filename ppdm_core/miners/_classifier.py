"""What the classifiers share: checks of the input, and the class with the largest vote."""

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
from ppdm_core.model.release import Public
from ppdm_core.numerics.linear_map import noise_variance


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier made of two steps.

    ``_learn`` takes the released rows and the codes of their labels; ``_votes`` gives every query
    a number of at least 0 for each class, not all of them 0. The largest wins, of equal ones the
    first in sorted order.
    """

    classes_: NDArray[Any]

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """``X``: released rows, in components where a map is published; ``y``: their labels."""
        self._check_parameters()
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._learn(rows, codes.astype(np.int64))
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likeliest class of each record; ``X`` as they are, without noise."""
        votes = self._votes(self._checked(X))
        answers: NDArray[Any] = self.classes_[votes.argmax(axis=1)]
        return answers

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Each class's share of the votes."""
        votes = self._votes(self._checked(X))
        shares: Floats = votes / votes.sum(axis=1, keepdims=True)
        return shares

    def _checked(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        queries: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return queries

    def _check_parameters(self) -> None:
        """Parameters are only read when a fit begins, as scikit-learn asks."""

    @abstractmethod
    def _learn(self, X: Floats, codes: Ints) -> None: ...

    @abstractmethod
    def _votes(self, X: Floats) -> Floats: ...


def check(is_right: bool, owner: object, name: str, wanted: str) -> None:
    """One wording for parameters that cannot be."""
    if not is_right:
        got = getattr(owner, name)
        raise ValueError(
            f"The '{name}' parameter of {type(owner).__name__} must be {wanted}. Got {got!r}."
        )


def is_count(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return int(value) >= 1


def checked_noise(owner: Any, columns: int) -> Floats | None:
    """The 'noise_variance' parameter as an array, if there is one."""
    if owner.noise_variance is None:
        return None
    noise = np.asarray(owner.noise_variance, dtype=np.float64)
    is_right = noise.shape == (columns,) and bool(np.all(noise > 0) and np.all(noise < np.inf))
    check(is_right, owner, "noise_variance", f"{columns} numbers above 0, one a column")
    return noise


def noise_or_none(public: Public) -> Floats | None:
    """The variance of the published noise in each component; None without noise or variance."""
    try:
        return noise_variance(public)
    except NotApplicable:
        return None
