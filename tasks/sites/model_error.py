"""The error of the centre's classifiers on a site's own test rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from ppdm_core.audit.disclosure_rounding import round_up
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.errors import BadInput
from tasks.context import ReleaseContext
from tasks.sites.exchange import ASK_SENDER
from warehouse.messages.payloads import ClassifierModel

MIN_TEST_ROWS = 20  # on fewer, a rounded error says nothing


def measure_model_errors(
    path: str, context: ReleaseContext, models: Sequence[ClassifierModel], sites: int
) -> list[float]:
    """Return the share of test rows that each classifier gets wrong, rounded up to its band.

    There is one for the rows of the first 1, 2, ... sites. The errors of many others would tell the
    centre more of the test rows.
    """
    if [model.sites for model in models] != list(range(1, sites + 1)):
        raise BadInput("The centre sent other classifiers than one per site.", remedy=ASK_SENDER)
    X, label = read_test_rows(Path(path), context)
    return [round_up(float(np.mean(predict(model, X) != label))) for model in models]


def read_test_rows(path: Path, context: ReleaseContext) -> tuple[Floats, Codes]:
    """Return features and labels of a CSV file with the columns of the release file."""
    features = [column for column in context.columns if column.role == "feature"]
    label = context.label
    if label is None:
        raise BadInput(
            "Test rows need a label, and the release has none.", remedy="Join without --test."
        )
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        X = np.array([[float(row[each.name]) for each in features] for row in rows])
        codes = [label.categories.index(row[label.name]) for row in rows]
    except (OSError, ValueError, KeyError):
        raise BadInput(
            f"The test rows {path.name} cannot be read.",
            file=str(path),
            remedy="Write a CSV file with the features and the label of the release file.",
        ) from None
    if len(X) < MIN_TEST_ROWS:
        raise BadInput(
            f"The test rows {path.name} have {len(X)} rows; {MIN_TEST_ROWS} are needed.",
            file=str(path),
            remedy="Add test rows, or join without --test.",
        )
    lows = [float(cast(float, each.low)) for each in features]
    highs = [float(cast(float, each.high)) for each in features]
    return np.clip(X, lows, highs), np.array(codes, dtype=np.int32)


def predict(model: ClassifierModel, X: Floats) -> Codes:
    """Return the class with the largest posterior of a naive Bayes model, (n,)."""
    means, variances = np.array(model.means), np.array(model.variances)
    if means.shape != variances.shape or means.shape[1] != X.shape[1]:
        raise BadInput("The centre sent a classifier of other columns.", remedy=ASK_SENDER)
    with np.errstate(over="ignore"):  # such a class is far from every row
        squares = (X[:, None, :] - means) ** 2 / variances
    score = np.log(model.priors) - 0.5 * np.sum(squares + np.log(variances), axis=2)
    return np.array(model.classes, dtype=np.int32)[np.argmax(score, axis=1)]
