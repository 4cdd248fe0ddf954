from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import Guarantee, Released
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import Sanitizer, make_sanitizer
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from ppdm_core.sanitizers.pipeline import Pipeline
from ppdm_core.sanitizers.random_rotation import RandomRotation
from ppdm_core.sanitizers.randomized_response import RandomizedResponse
from tests.contract import cases
from tests.support.tables import (
    KEY,
    adapt_columns,
    fit_sanitizer,
    make_table,
    read_codes,
    read_numbers,
    run_sanitizer,
    scale_rows,
)

PCA: dict[str, Any] = {"components": 2, "b": 0.5, "noise_shape": "per_component"}
GAMMA = {"attribute": {"c0": 3.0, "c1": 2.0}}
ANSWERS = {"method": "randomized_response", "gamma": GAMMA}


def make_pipeline(
    method: str = "pca_laplace", scale: str = "minmax", **parameters: Any
) -> Pipeline:
    given = parameters or (PCA if method == "pca_laplace" else {})
    return Pipeline(numeric={"method": method, **given}, categorical=ANSWERS, scale=scale)


def make_mixed_rows(n: int = 80) -> ArrayRows:
    return adapt_columns(make_table(n), make_pipeline())


def compute_guarantee(sanitizer: Sanitizer, rows: ArrayRows) -> Guarantee:
    fitted = fit_sanitizer(sanitizer, rows)
    return sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted)


@pytest.mark.parametrize("scale", ["minmax", "zscore"])
def test_pipeline_each_part_equals_method_alone(scale: str):
    both = make_pipeline(scale=scale)
    rows, pca, responses = (
        make_mixed_rows(),
        PcaLaplace(scale=scale, **PCA),
        RandomizedResponse(gamma=GAMMA),
    )
    fitted = fit_sanitizer(both, rows)
    assert fitted == fit_sanitizer(pca, adapt_columns(make_table(80), pca))
    one: Released = run_sanitizer(both, rows, fitted=fitted)
    two = run_sanitizer(pca, adapt_columns(make_table(80), pca), fitted=fitted)
    words = adapt_columns(make_table(80), responses)
    three = responses.sanitize(words, Noise(KEY), {})
    assert np.array_equal(read_numbers(one.rows), read_numbers(two.rows))
    assert np.array_equal(read_codes(one.rows), read_codes(three.rows))
    assert one.public.columns == two.public.columns
    assert one.public.responses == three.public.responses
    assert (one.atom, one.counts) == (two.atom, two.counts)
    assert one.counts.keys() == {"clipped scores"}
    assert one.public.facts["numeric_method"] == "pca_laplace"


NUMERIC = {
    id_: case
    for id_, case in cases.SANITIZERS.items()
    if case.make().accepts == {"numeric"} and case.make().row_aligned
}


@pytest.mark.parametrize("case", NUMERIC.values(), ids=NUMERIC)
def test_pipeline_every_numeric_method_leaves_categories_unchanged(case: cases.SanitizerCase):
    """A numeric method changes no category and keeps the order of rows."""
    given = {name: value for name, value in case.parameters.items() if name != "scale"}
    both = make_pipeline(case.key, case.parameters.get("scale", "minmax"), **given)
    responses = RandomizedResponse(gamma=GAMMA)
    found = run_sanitizer(both, make_mixed_rows(60)).rows
    alone = responses.sanitize(adapt_columns(make_table(60), responses), Noise(KEY), {}).rows
    assert np.array_equal(read_codes(found), read_codes(alone))
    keys = np.concatenate([block.key for block in found.blocks()])
    assert np.array_equal(keys, make_table(60).whole.key)


def test_guarantee_record_gammas_multiply():
    rows = make_mixed_rows()
    both, alone = (
        compute_guarantee(make_pipeline(), rows),
        compute_guarantee(PcaLaplace(**PCA), rows),
    )
    assert both.kind == alone.kind == "bounded"
    assert both.ln_record == pytest.approx(alone.ln_record + math.log(6.0))
    assert both.ln_attribute == max(alone.ln_attribute, math.log(3.0))
    assert both.ln_component == max(alone.ln_component, math.log(3.0))
    assert set(alone.assumptions) < set(both.assumptions)


def test_guarantee_attribute_is_larger_part():
    found = compute_guarantee(make_pipeline(components=1, b=50.0), make_mixed_rows())
    assert found.ln_attribute == found.ln_component == math.log(3.0)


def test_guarantee_kind_is_that_of_weaker_part():
    assert (
        compute_guarantee(make_pipeline("random_rotation"), make_mixed_rows()).kind == "empirical"
    )
    assert (
        compute_guarantee(make_pipeline("random_rotation"), make_mixed_rows()).ln_record == math.inf
    )
    assert compute_guarantee(make_pipeline("random_rotation"), make_mixed_rows()).without_bound == (
        "random_rotation",
    )
    assert compute_guarantee(make_pipeline(), make_mixed_rows()).without_bound == ()
    private = compute_guarantee(make_pipeline(**PCA, basis="private"), make_mixed_rows())
    assert private.kind == "bounded_given_basis"


def test_pipeline_change_in_one_part_leaves_other_unchanged():
    rows = make_mixed_rows()
    fitted = fit_sanitizer(make_pipeline(), rows)
    before = run_sanitizer(make_pipeline(), rows, fitted=fitted).rows
    whole = rows.whole
    moved = ArrayRows(rows.schema, whole.X[::-1], whole.label, whole.key, whole.C)
    after = run_sanitizer(make_pipeline(), moved, fitted=fitted).rows
    assert np.array_equal(read_codes(before), read_codes(after))
    assert not np.array_equal(read_numbers(before), read_numbers(after))
    recoded = ArrayRows(rows.schema, whole.X, whole.label, whole.key, whole.C[::-1])
    again = run_sanitizer(make_pipeline(), recoded, fitted=fitted).rows
    assert np.array_equal(read_numbers(before), read_numbers(again))
    assert not np.array_equal(read_codes(before), read_codes(again))


def test_pipeline_attributes_follow_numeric_part():
    sample = make_pipeline(**PCA, basis="sample", basis_share=0.3)
    assert (sample.set_aside, sample.learns, sample.keeps_columns) == (0.3, True, False)
    assert sample.basis_file is None
    kept = make_pipeline(**PCA, basis="file", basis_file="b.json", space="original")
    assert (kept.set_aside, kept.learns, kept.keeps_columns) == (0.0, False, True)
    assert kept.basis_file == "b.json"
    rotated = make_pipeline("random_rotation")
    assert (rotated.set_aside, rotated.learns) == (0.0, False)
    assert make_pipeline("random_rotation", "zscore").learns


def test_fit_parameters_other_numeric_part_differ():
    fits = [
        make_pipeline(**PCA),
        make_pipeline(**{**PCA, "components": 1}),
        make_pipeline(**PCA, scale="zscore"),
    ]
    found = [each.fit_parameters() for each in fits]
    assert found[0] != found[1] != found[2] != found[0]
    same = replace(fits[0], categorical={**ANSWERS, "gamma": {"record": 7}})
    assert same.fit_parameters() == found[0]


def test_mechanism_contains_both_parts():
    rows = make_mixed_rows()
    fitted = fit_sanitizer(make_pipeline(), rows)
    schema = scale_rows(rows, fitted).schema
    one = make_pipeline().fingerprint(schema, fitted)
    louder = replace(make_pipeline(), numeric={"method": "pca_laplace", **PCA, "b": 0.7})
    other = replace(make_pipeline(), categorical={**ANSWERS, "gamma": {"record": 7}})
    assert len({one, louder.fingerprint(schema, fitted), other.fingerprint(schema, fitted)}) == 3


@pytest.mark.parametrize("missing", ["numeric", "categorical"])
def test_pipeline_table_of_one_kind_raises(missing: str):
    alone = RandomRotation() if missing == "categorical" else RandomizedResponse(gamma=GAMMA)
    method = "randomized_response" if missing == "categorical" else "random_rotation"
    with pytest.raises(BadInput, match=f"Method '{method}' has no feature to release"):
        run_sanitizer(make_pipeline("random_rotation"), adapt_columns(make_table(), alone))


def test_check_kinds_too_few_features_of_a_part_raises():
    both = make_pipeline(components=3, b=0.3)
    both.check_kinds(3, 1)
    with pytest.raises(BadInput, match=r"an int in \[1, 2\]"):
        both.check_kinds(2, 5)
    with pytest.raises(BadInput, match="no feature"):
        both.check_kinds(3, 0)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"numeric": "pca_laplace"}, "'numeric' parameter of Pipeline must be a table with a meth"),
        ({"numeric": {"b": 0.3}}, "'numeric' parameter of Pipeline must be a table with a method"),
        ({"numeric": {"method": "magic"}}, "with one of .*pca_laplace.*Got 'magic'"),
        ({"numeric": {"method": "pipeline"}}, "'numeric' parameter of Pipeline"),
        ({"numeric": ANSWERS}, "'numeric' parameter of Pipeline"),
        ({"numeric": {"method": "kde_resample"}}, "'numeric' parameter of Pipeline"),
        ({"categorical": {"method": "random_rotation"}}, "one of randomized_response. Got 'random"),
        ({"numeric": {"method": "pca_laplace", "b": -1}}, "'b' parameter of PcaLaplace"),
        ({"numeric": {"method": "pca_laplace", "c": 1}}, "'c' is not a parameter of method 'pca"),
        ({"categorical": {"method": "randomized_response"}}, "needs the parameter 'gamma'"),
        ({"numeric": {"method": "random_rotation", "scale": "none"}}, "without scale and refit"),
    ],
)
def test_parameters_invalid_raise(changed: dict[str, Any], sentence: str):
    good = {"numeric": {"method": "random_rotation"}, "categorical": ANSWERS}
    make_sanitizer("pipeline", good)
    with pytest.raises(BadInput, match=sentence):
        make_sanitizer("pipeline", {**good, **changed})
