"""Classification by a small neural network."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Self

import numpy as np

from ppdm_core.miners._classifier import Classifier
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.release import PublicParameters


class NeuralNetwork(Classifier):
    """scikit-learn's ``MLPClassifier`` on columns of mean 0 and deviation 1.

    ``hidden``: neurons in each hidden layer; ``alpha``: the penalty on weights; ``max_iter``: the
    largest number of passes over the rows, without a check of convergence; ``solver``: "lbfgs" or
    "adam"; ``random_state``: seed of the first weights and of the batches of adam.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (16,),
        alpha: float = 3.0,
        max_iter: int = 200,
        solver: str = "lbfgs",
        random_state: int = 0,
    ) -> None:
        self.hidden = hidden
        self.alpha = alpha
        self.max_iter = max_iter
        self.solver = solver
        self.random_state = random_state

    @classmethod
    def from_public(cls, public: PublicParameters, *, random_state: int = 0) -> Self:
        """Return the miner, which needs no published parameters."""
        return cls(random_state=random_state)

    def _learn(self, X: Floats, codes: Ints) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier

        deviation = X.std(axis=0)
        self._mean = X.mean(axis=0)
        self._unit = np.where(deviation > 0, deviation, 1.0)
        self._network = MLPClassifier(
            hidden_layer_sizes=tuple(self.hidden),
            alpha=self.alpha,
            max_iter=self.max_iter,
            solver=self.solver,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._network.fit((X - self._mean) / self._unit, codes)
        self.n_iter_ = int(self._network.n_iter_)

    def _compute_votes(self, X: Floats) -> Floats:
        votes: Floats = self._network.predict_proba((X - self._mean) / self._unit)
        return votes
