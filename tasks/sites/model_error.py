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
ADD_ROWS = "Add test rows, or leave out --test."
CHECK_VALUES = "Correct the cell, or leave out its row."


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
            "Test rows need a label, and the release has none.", remedy="Leave out --test."
        )
    names = [*(each.name for each in features), label.name]
    cells = read_cells(path, names)
    if len(cells[label.name]) < MIN_TEST_ROWS:
        raise refuse_test_rows(
            path, f"are {len(cells[label.name])} rows; {MIN_TEST_ROWS} are needed", ADD_ROWS
        )
    X = np.column_stack([parse_numbers(path, each.name, cells[each.name]) for each in features])
    if not set(cells[label.name]) <= set(label.categories):
        what = f"have a value of '{label.name}' that the release file does not declare"
        raise refuse_test_rows(path, what, CHECK_VALUES, label.name)
    codes = [label.categories.index(each) for each in cells[label.name]]
    lows = [float(cast(float, each.low)) for each in features]
    highs = [float(cast(float, each.high)) for each in features]
    return np.clip(X, lows, highs), np.array(codes, dtype=np.int32)


def read_cells(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the cells of these columns of a CSV file; raise BadInput if one is missing."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, restval="")
            header, rows = reader.fieldnames or [], list(reader)
    except (OSError, ValueError, csv.Error):
        raise refuse_test_rows(path, "cannot be read as CSV in UTF-8", "Check the file.") from None
    for name in names:
        count = header.count(name)
        if count != 1:
            what = f"have {count} columns '{name}'" if count else f"have no column '{name}'"
            remedy = "Write a CSV file with the features and the label of the release file."
            raise refuse_test_rows(path, what, remedy, name)
    if any(None in row for row in rows):
        raise refuse_test_rows(
            path, "have a row with more cells than columns", "Write commas in cells within quotes."
        )
    return {name: [row[name] for row in rows] for name in names}


def parse_numbers(path: Path, name: str, cells: Sequence[str]) -> Floats:
    """Return the numbers of a column, none of which may be missing."""
    try:
        values = np.array([float(each) for each in cells])
    except ValueError:
        values = np.full(1, np.nan)
    if not np.isfinite(values).all():
        what = f"have a cell in column '{name}' that is not a number"
        raise refuse_test_rows(path, what, CHECK_VALUES, name)
    return values


def refuse_test_rows(path: Path, what: str, remedy: str, column: str | None = None) -> BadInput:
    """Return the error of test rows that cannot be used, without any value of them."""
    return BadInput(
        f"The test rows {path.name} {what}.", file=str(path), column=column, remedy=remedy
    )


def predict(model: ClassifierModel, X: Floats) -> Codes:
    """Return the class with the largest posterior of a naive Bayes model, (n,)."""
    means, variances = np.array(model.means), np.array(model.variances)
    if means.shape != variances.shape or means.shape[1] != X.shape[1]:
        raise BadInput("The centre sent a classifier of other columns.", remedy=ASK_SENDER)
    with np.errstate(over="ignore"):  # such a class is far from every row
        squares = (X[:, None, :] - means) ** 2 / variances
    score = np.log(model.priors) - 0.5 * np.sum(squares + np.log(variances), axis=2)
    return np.array(model.classes, dtype=np.int32)[np.argmax(score, axis=1)]
