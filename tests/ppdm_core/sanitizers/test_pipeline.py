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
from tests.support.tables import KEY, codes, fit, numbers, release, scaled, suited, table

PCA: dict[str, Any] = {"components": 2, "b": 0.5, "noise_shape": "per_component"}
GAMMA = {"attribute": {"c0": 3.0, "c1": 2.0}}
ANSWERS = {"method": "randomized_response", "gamma": GAMMA}


def pipeline(method: str = "pca_laplace", scale: str = "minmax", **parameters: Any) -> Pipeline:
    given = parameters or (PCA if method == "pca_laplace" else {})
    return Pipeline(numeric={"method": method, **given}, categorical=ANSWERS, scale=scale)


def mixed(n: int = 80) -> ArrayRows:
    return suited(table(n), pipeline())


def promise(sanitizer: Sanitizer, rows: ArrayRows) -> Guarantee:
    fitted = fit(sanitizer, rows)
    return sanitizer.guarantee(scaled(rows, fitted).schema, fitted)


@pytest.mark.parametrize("scale", ["minmax", "zscore"])
def test_each_part_does_what_it_does_alone(scale: str):
    both = pipeline(scale=scale)
    rows, pca, responses = mixed(), PcaLaplace(scale=scale, **PCA), RandomizedResponse(gamma=GAMMA)
    fitted = fit(both, rows)
    assert fitted == fit(pca, suited(table(80), pca))
    one: Released = release(both, rows, fitted=fitted)
    two = release(pca, suited(table(80), pca), fitted=fitted)
    words = suited(table(80), responses)
    three = responses.sanitize(words, Noise(KEY), {})
    assert np.array_equal(numbers(one.rows), numbers(two.rows))
    assert np.array_equal(codes(one.rows), codes(three.rows))
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
def test_every_numeric_method_takes_its_place(case: cases.SanitizerCase):
    """It leaves the categories to the other part, and its rows in their places."""
    given = {name: value for name, value in case.parameters.items() if name != "scale"}
    both = pipeline(case.key, case.parameters.get("scale", "minmax"), **given)
    responses = RandomizedResponse(gamma=GAMMA)
    found = release(both, mixed(60)).rows
    alone = responses.sanitize(suited(table(60), responses), Noise(KEY), {}).rows
    assert np.array_equal(codes(found), codes(alone))
    keys = np.concatenate([block.key for block in found.blocks()])
    assert np.array_equal(keys, table(60).whole.key)


def test_the_gammas_of_a_record_multiply():
    rows = mixed()
    both, alone = promise(pipeline(), rows), promise(PcaLaplace(**PCA), rows)
    assert both.kind == alone.kind == "bounded"
    assert both.ln_record == pytest.approx(alone.ln_record + math.log(6.0))
    assert both.ln_attribute == max(alone.ln_attribute, math.log(3.0))
    assert both.ln_component == max(alone.ln_component, math.log(3.0))
    assert set(alone.assumptions) < set(both.assumptions)


def test_the_larger_part_gives_the_figure_of_an_attribute():
    found = promise(pipeline(components=1, b=50.0), mixed())
    assert found.ln_attribute == found.ln_component == math.log(3.0)


def test_it_is_as_weak_as_its_weaker_part():
    assert promise(pipeline("random_rotation"), mixed()).kind == "empirical"
    assert promise(pipeline("random_rotation"), mixed()).ln_record == math.inf
    assert promise(pipeline("random_rotation"), mixed()).without_bound == ("random_rotation",)
    assert promise(pipeline(), mixed()).without_bound == ()
    private = promise(pipeline(**PCA, basis="private"), mixed())
    assert private.kind == "bounded_given_basis"


def test_neither_part_looks_at_the_other():
    rows = mixed()
    fitted = fit(pipeline(), rows)
    before = release(pipeline(), rows, fitted=fitted).rows
    whole = rows.whole
    moved = ArrayRows(rows.schema, whole.X[::-1], whole.label, whole.key, whole.C)
    after = release(pipeline(), moved, fitted=fitted).rows
    assert np.array_equal(codes(before), codes(after))
    assert not np.array_equal(numbers(before), numbers(after))
    recoded = ArrayRows(rows.schema, whole.X, whole.label, whole.key, whole.C[::-1])
    again = release(pipeline(), recoded, fitted=fitted).rows
    assert np.array_equal(numbers(before), numbers(again))
    assert not np.array_equal(codes(before), codes(again))


def test_it_asks_its_numeric_part():
    sample = pipeline(**PCA, basis="sample", basis_share=0.3)
    assert (sample.set_aside, sample.learns, sample.keeps_columns) == (0.3, True, False)
    assert sample.basis_file is None
    kept = pipeline(**PCA, basis="file", basis_file="b.json", space="original")
    assert (kept.set_aside, kept.learns, kept.keeps_columns) == (0.0, False, True)
    assert kept.basis_file == "b.json"
    rotated = pipeline("random_rotation")
    assert (rotated.set_aside, rotated.learns) == (0.0, False)
    assert pipeline("random_rotation", "zscore").learns


def test_another_numeric_fit_is_another_fit():
    fits = [pipeline(**PCA), pipeline(**{**PCA, "components": 1}), pipeline(**PCA, scale="zscore")]
    found = [each.fit_parameters() for each in fits]
    assert found[0] != found[1] != found[2] != found[0]
    same = replace(fits[0], categorical={**ANSWERS, "gamma": {"record": 7}})
    assert same.fit_parameters() == found[0]


def test_the_mechanism_holds_both_parts():
    rows = mixed()
    fitted = fit(pipeline(), rows)
    schema = scaled(rows, fitted).schema
    one = pipeline().fingerprint(schema, fitted)
    louder = replace(pipeline(), numeric={"method": "pca_laplace", **PCA, "b": 0.7})
    other = replace(pipeline(), categorical={**ANSWERS, "gamma": {"record": 7}})
    assert len({one, louder.fingerprint(schema, fitted), other.fingerprint(schema, fitted)}) == 3


@pytest.mark.parametrize("missing", ["numeric", "categorical"])
def test_a_table_of_one_kind_has_no_use_for_it(missing: str):
    alone = RandomRotation() if missing == "categorical" else RandomizedResponse(gamma=GAMMA)
    method = "randomized_response" if missing == "categorical" else "random_rotation"
    with pytest.raises(BadInput, match=f"Method '{method}' has no feature to release"):
        release(pipeline("random_rotation"), suited(table(), alone))


def test_the_counts_of_features_are_checked_part_by_part():
    both = pipeline(components=3, b=0.3)
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
        ({"numeric": {"method": "magic"}}, "must be a table with one of pca_laplace.*Got 'magic'"),
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
def test_bad_parameters_are_told(changed: dict[str, Any], sentence: str):
    good = {"numeric": {"method": "random_rotation"}, "categorical": ANSWERS}
    make_sanitizer("pipeline", good)
    with pytest.raises(BadInput, match=sentence):
        make_sanitizer("pipeline", {**good, **changed})
