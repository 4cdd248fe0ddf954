"""Classifiers and other miners for recipients of a release and its published parameters.

One file for each miner, one line here. All except ``Frequencies`` are scikit-learn estimators, so
importing this package imports scikit-learn.
"""

from __future__ import annotations

from typing import Any

from ppdm_core.miners.frequencies import Frequencies
from ppdm_core.miners.kmeans import KMeans
from ppdm_core.miners.knn import KNN
from ppdm_core.miners.naive_bayes import NaiveBayes
from ppdm_core.miners.neural_network import NeuralNetwork
from ppdm_core.miners.noise_aware import NoiseAware
from ppdm_core.miners.radius_knn import RadiusKNN

MINERS: dict[str, type[Any]] = {
    "knn": KNN,
    "radius_knn": RadiusKNN,
    "noise_aware": NoiseAware,
    "naive_bayes": NaiveBayes,
    "neural_network": NeuralNetwork,
    "kmeans": KMeans,
    "frequencies": Frequencies,
}

__all__ = ["MINERS"]
