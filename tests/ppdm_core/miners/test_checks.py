"""All classifiers pass the checks of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from ppdm_core.miners import MINERS
from ppdm_core.miners.knn import KNN
from ppdm_core.miners.naive_bayes import NaiveBayes
from ppdm_core.miners.neural_network import NeuralNetwork
from ppdm_core.miners.noise_aware import NoiseAware
from ppdm_core.miners.radius_knn import RadiusKNN
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters

CLASSIFIERS: dict[str, type[Any]] = {
    "knn": KNN,
    "radius_knn": RadiusKNN,
    "noise_aware": NoiseAware,
    "naive_bayes": NaiveBayes,
    "neural_network": NeuralNetwork,
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread: more do not pay off on such small tables."""
    with threadpool_limits(limits=1):
        yield


@pytest.mark.extended
@parametrize_with_checks([KNN(), RadiusKNN(), NaiveBayes()])
def test_classifier_scikit_learn_check_passes(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        KNN(k="cv", candidates=(1, 5), folds=2),
        RadiusKNN(mean=1.0, variance=1.0),
        NoiseAware(),
        NeuralNetwork(max_iter=50),
    ]
)
def test_classifier_of_more_cost_scikit_learn_check_passes(estimator: Any, check: Any) -> None:
    check(estimator)


def test_miners_dict_lists_all_classifiers() -> None:
    found = {name: miner for name, miner in MINERS.items() if hasattr(miner, "predict_proba")}
    assert found == CLASSIFIERS


def make_public(scales: list[float], **facts: float) -> PublicParameters:
    return PublicParameters(
        method="pca_laplace",
        space="components",
        columns=tuple(f"component_{i}" for i in range(len(scales))),
        law="laplace",
        scales=np.array(scales),
        facts=facts,
    )


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_from_public_published_noise_fits_and_predicts(name: str) -> None:
    moments = {"distance_distortion_mean": 0.5, "distance_distortion_variance": 0.1}
    rng = np.random.default_rng(1)
    label = np.array(["no", "yes"] * 50)
    Z = rng.laplace(0.0, [0.1, 0.2], (100, 2)) + (label == "yes")[:, None]
    model = CLASSIFIERS[name].from_public(make_public([0.1, 0.2], **moments)).fit(Z, label)
    assert model.predict([[0.0, 0.0], [1.0, 1.0]]).tolist() == ["no", "yes"]


def test_from_public_noise_without_variance_not_applicable() -> None:
    public = PublicParameters(
        "x", "components", ("z",), law="student_t", scales=np.ones(1), facts={"nu": 2}
    )
    assert NaiveBayes.from_public(public).noise_variance is None
    with pytest.raises(NotApplicable, match="no variance"):
        NoiseAware.from_public(public)
    with pytest.raises(NotApplicable, match="no variance"):
        RadiusKNN.from_public(public, moments="consistent")


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (KNN(k=0), "k"),
        (KNN(k="best"), "k"),
        (KNN(weights="far"), "weights"),
        (KNN(candidates=()), "candidates"),
        (KNN(folds=1), "folds"),
        (RadiusKNN(mean=float("nan")), "mean"),
        (RadiusKNN(variance=-1.0), "variance"),
        (RadiusKNN(k=True), "k"),
        (NaiveBayes(floor=0.0), "floor"),
        (NaiveBayes(noise_variance=[0.1]), "noise_variance"),
        (NoiseAware(noise_variance=[0.1, -0.1]), "noise_variance"),
        (NoiseAware(prior="mine"), "prior"),
        (NoiseAware(groups=(0,)), "groups"),
        (NoiseAware(shrinkage=(0.0,)), "shrinkage"),
        (NoiseAware(folds=1.5), "folds"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_fit_bad_parameter_named_in_error(model: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"The '{named}' parameter of {type(model).__name__} must"):
        model.fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 1])


@pytest.mark.extended
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [*CLASSIFIERS, "kmeans"])
def test_predict_missing_value_one_sentence_with_row(name: str, bad: float) -> None:
    rng = np.random.default_rng(2)
    X, label = rng.normal(size=(60, 2)), np.array(["no", "yes"] * 30)
    model = MINERS[name]().fit(X, label)
    queries = rng.normal(size=(5, 2))
    queries[2, 1] = bad
    sentence = "NaN or infinite cells in 1 of 5 rows, first in row 3, column 2. Leave such rows"
    with pytest.raises(ValueError, match=sentence):
        model.predict(queries)
    if hasattr(model, "report"):
        with pytest.raises(ValueError, match=sentence):
            model.report(queries)
    X[7, 0] = bad
    with pytest.raises(ValueError, match="cells in 1 of 60 rows, first in row 8, column 1"):
        MINERS[name]().fit(X, label)


@pytest.mark.extended
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=["None", "NaN", "NA"])
@pytest.mark.parametrize("name", [*CLASSIFIERS, "kmeans"])
def test_predict_missing_cell_of_data_frame_column_named(name: str, missing: Any) -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "income"])
    model = MINERS[name]().fit(X, np.array(["no", "yes"] * 30))
    queries = pd.DataFrame({"age": [1.0, 2.0], "income": pd.Series([0.5, missing], dtype=object)})
    with pytest.raises(ValueError, match="in 1 of 2 rows, first in row 2, column 'income'"):
        model.predict(queries)
