"""Settings that a method cannot fulfil: bad input with a remedy, exit code 2, no tables stored.

``ppdm check`` finds what follows from the release file alone, ``ppdm release`` the rest.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Attacker, Limit, Policy
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw, validate
from tasks.sanitize.task import draw_candidate
from tasks.settings_check import check_settings
from tests.support.contexts import make_context
from warehouse.columns import Column

NAMES = ("x", "y", "z")
WORD = Column("word", "feature", "categorical", categories=("a", "b"))
PRIVATE = {"basis": "private"}  # which records are set aside depends on the key
ANSWERS = {"method": "randomized_response", "gamma": {"attribute": 3}}
POLICY = Policy(
    required=(),
    limits={"amplification.record": Limit(1e9, "DPO", "as the test needs it")},
    attacker=Attacker(),
    shadow_draws=1,
)
Parameters = dict[str, Any]


def feature(name: str, **bounds: Any) -> Column:
    return Column(name, "feature", "numeric", **{"low": 0.0, "high": 1.0, **bounds})


def make_method_context(
    folder: Path, method: str, columns: tuple[Column, ...], **given: Any
) -> ReleaseContext:
    return make_context(
        folder,
        columns=(
            Column("id", "identifier"),
            *columns,
            WORD if method == "pipeline" else Column("word", "exclude"),
            Column("class", "label", "categorical", categories=("p", "q", "r")),
        ),
        method=method,
        parameters=given,
        policy=POLICY,
    )


# Method, parameters, count of numeric features, and words of the sentence and its remedy.
BY_FILE: dict[str, tuple[str, Parameters, int, str]] = {
    "pca: too many components": (
        "pca_laplace",
        {"components": 4, "b": 0.3},
        3,
        r"'components' parameter of PcaLaplace must be an int in \[1, 3\]\. Got 4\. Change 'comp",
    ),
    "projection: too many components": (
        "random_projection",
        {"components": 4},
        3,
        r"'components' parameter of RandomProjection must be an int in \[1, 3\]\. Got 4\. Change",
    ),
    "layout: too many dimensions": (
        "nonmetric_mds",
        {"dimensions": 3},
        3,
        r"'dimensions' parameter of NonmetricMds must be an int in \[1, 2\]\. Got 3\. Change",
    ),
    "layout: one column": ("nonmetric_mds", {}, 1, "at least 2 features; there is 1.*Give more"),
    "cosines: one column": ("dct_fuzzy", {}, 1, "at least 2 features; there is 1.*Give more"),
    "projection: one column": ("random_projection", {}, 1, "at least 2 features.*Give more"),
    "pca: 60 b": ("pca_laplace", {"b": 0.008}, 3, r"'b' parameter .* above 1/120.*Change 'b'"),
    "noise: 60 b": ("additive_noise", {"b": 0.008}, 3, r"'b' parameter .* above 1/120.*Change"),
    "cosines: order": ("dct_fuzzy", {"order": ["x"]}, 3, r"'order'.*all 3 features.*Change 'ord"),
}
PARTS = {
    f"pipeline, {name}": (
        "pipeline",
        {"numeric": {"method": method, **given}, "categorical": ANSWERS},
        d,
        words,
    )
    for name, (method, given, d, words) in BY_FILE.items()
}


def check_message(caught: pytest.ExceptionInfo[BadInput], words: str) -> None:
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert caught.value.remedy
    assert re.search(words, message), message


@pytest.mark.parametrize("what", {**BY_FILE, **PARTS})
def test_check_settings_infeasible_parameters_bad_input(what: str, tmp_path: Path) -> None:
    method, given, d, words = {**BY_FILE, **PARTS}[what]
    context = make_method_context(tmp_path, method, tuple(map(feature, NAMES[:d])), **given)
    with pytest.raises(BadInput) as caught:
        check_settings(context)
    check_message(caught, words)


def values(n: int = 40) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.05, 0.45, (n, 3))


def dependent(X: np.ndarray) -> None:
    X[:, 2] = X[:, 0] + X[:, 1]


def constant(X: np.ndarray) -> None:
    X[:, 1] = 0.123456789


def zero(X: np.ndarray) -> None:
    X[:] = 0.0


def few(X: np.ndarray) -> None:
    X[3:] = X[0]


# Method, parameters, change of the records, and words of the sentence and its remedy.
BY_DATA: dict[str, tuple[str, Parameters, Any, str]] = {
    "more components than rank": (
        "pca_laplace",
        {"components": 3, "b": 0.5, **PRIVATE},
        dependent,
        r"int in \[1, 2\]\. Got 3\. Lower 'components'",
    ),
    "no component at all": (
        "pca_laplace",
        {"components": 0.5, "b": 0.5, **PRIVATE},
        zero,
        "All feature columns are constant.*Declare columns that vary",
    ),
    "a class of one": ("kde_resample", {}, None, 'one record.*set lonely = "merge"'),
    "records that are alike": (
        "kde_resample",
        {"lonely": "merge"},
        zero,
        'All records are equal.*bandwidth = "floor"',
    ),
    "too many rows": (
        "kde_resample",
        {"rows": 401, "lonely": "merge"},
        None,
        "at most 10 times.*Change 'rows'",
    ),
    "60 b": (
        "pca_laplace",
        {"components": 2, "b": 0.009, **PRIVATE},
        None,
        "cannot come from all inputs.*Raise 'b' to",
    ),
    "60 b by gamma": (
        "pca_laplace",
        {"components": 2, "gamma": {"record": 1e200}, **PRIVATE},
        None,
        "cannot come from all inputs.*Lower 'gamma'",
    ),
    "few different records": (
        "nonmetric_mds",
        {"dimensions": 2},
        few,
        "at least 4 different records.*Lower 'dimensions'",
    ),
    "no energy": ("dct_fuzzy", {}, zero, "no energy to keep.*change 'centre'"),
    "constant, as z-scores": (
        "random_rotation",
        {"scale": "zscore"},
        constant,
        "Column 'y' is constant.*exclude",
    ),
}
SOON = ("more components than rank", "a class of one")


def release(context: ReleaseContext, X: np.ndarray) -> None:
    """Release the values up to the draw. One of the classes has a single record."""
    lines = [
        f"p{i},{x!r},{y!r},{z!r},{'ab'[i % 2]},{'pq'[i % 2] if i else 'r'}"
        for i, (x, y, z) in enumerate(X.tolist())
    ]
    Path(context.source.path).write_text("id,x,y,z,word,class\n" + "\n".join(lines) + "\n")
    release_id = begin_release.fn(context)
    for step in (load_raw, validate, draw_candidate):
        step.fn(context, release_id)


@pytest.mark.extended
@pytest.mark.parametrize(
    "what", [pytest.param(each, marks=[pytest.mark.slow] * (each not in SOON)) for each in BY_DATA]
)
def test_draw_candidate_infeasible_records_bad_input(what: str, tmp_path: Path) -> None:
    method, given, spoil, words = BY_DATA[what]
    context = make_method_context(tmp_path, method, tuple(map(feature, NAMES)), **given)
    check_settings(context)
    X = values()
    if spoil:
        spoil(X)
    with pytest.raises(BadInput) as caught:
        release(context, X)
    check_message(caught, words)
    assert "123456789" not in str(caught.value)
    check_no_tables_left(context)


def check_no_tables_left(context: ReleaseContext) -> None:
    with context.open_store().transaction() as db:
        stages = db.execute("select stage from meta.run").fetchall()
        left = """
            select count(*) from information_schema.tables
            where table_schema in ('raw', 'validated', 'sanitized')
        """
        assert stages == [("rejected",)]
        assert db.execute(left).fetchall() == [(0,)]


EVERY = {
    "pca_laplace": {"components": 2, "b": 0.5, **PRIVATE},
    "additive_noise": {"b": 0.5},
    "random_rotation": {},
    "random_projection": {"components": 2},
    "kde_resample": {"lonely": "merge"},
    "dct_fuzzy": {},
    "nonmetric_mds": {"dimensions": 2},
    "pipeline": {"numeric": {"method": "random_rotation"}, "categorical": ANSWERS},
}


@pytest.mark.slow
@pytest.mark.parametrize("method", EVERY)
def test_draw_candidate_constant_column_from_data_bad_input(method: str, tmp_path: Path) -> None:
    columns = (feature("x"), feature("y", low="from_data", high="from_data"), feature("z"))
    context = make_method_context(tmp_path, method, columns, **EVERY[method])
    check_settings(context)
    X = values()
    constant(X)
    with pytest.raises(BadInput) as caught:
        release(context, X)
    check_message(caught, "'y'.*is constant.*Declare low and high")
    assert "123456789" not in str(caught.value)
    check_no_tables_left(context)


@pytest.mark.slow
def test_draw_candidate_unchanged_table_released(tmp_path: Path) -> None:
    """The control: the unchanged table can be released, once the class of one record is merged."""
    for method, given in EVERY.items():
        folder = tmp_path / method
        folder.mkdir()
        release(make_method_context(folder, method, tuple(map(feature, NAMES)), **given), values())
