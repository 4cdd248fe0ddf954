from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.grid_noise import grid_step
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._basis import LOADING_STEP
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.support.tables import (
    KEY,
    fit_sanitizer,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)


@pytest.mark.parametrize("shape", ["isotropic", "per_component"])
@pytest.mark.parametrize("asked", [{"record": 1000}, {"attribute": 30.0}, {"component": 5.0},
                                   {"record": 1e5, "component": 20}])  # fmt: skip
def test_gamma_solved_b_meets_and_nearly_reaches_it(asked, shape):
    rows = make_table(300)
    sanitizer = PcaLaplace(components=2, gamma=asked, noise_shape=shape)
    fitted = fit_sanitizer(sanitizer, rows)
    promise = sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted)
    slack = {
        kind: math.log(value) - getattr(promise, f"ln_{kind}") for kind, value in asked.items()
    }
    assert min(slack.values()) >= 0.0
    assert min(slack.values()) < 0.01
    assert np.isfinite(read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows)).all()


def test_sanitize_other_b_scales_noise():
    rows = make_table(4000)
    sanitizer = PcaLaplace(components=2, b=0.2, space="components")
    fitted = fit_sanitizer(sanitizer, rows)
    released = run_sanitizer(sanitizer, rows, fitted=fitted)
    T = (read_cells(scale_rows(rows, fitted)) - 0.5) @ np.array(fitted["loadings"])
    noise = read_cells(released.rows) - T
    assert released.public.scales.tolist() == [0.2, 0.2]
    np.testing.assert_allclose(noise.std(axis=0), math.sqrt(2) * 0.2, rtol=0.05)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.02)
    assert released.atom == pytest.approx(math.tanh(grid_step(0.2) / 0.2 / 2))


@pytest.mark.parametrize("shape", ["isotropic", "per_component"])
@pytest.mark.parametrize("law", [{"law": "logistic"}, {"law": "student_t", "nu": 3}])
def test_gamma_other_laws_solved_b_meets_and_nearly_reaches_it(law, shape):
    rows = make_table(300)
    sanitizer = PcaLaplace(components=2, gamma={"record": 1000}, noise_shape=shape, **law)
    fitted = fit_sanitizer(sanitizer, rows)
    promise = sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted)
    assert math.log(1000) - 0.01 < promise.ln_record <= math.log(1000)
    assert promise.ln_component <= promise.ln_record


@pytest.mark.parametrize(
    ("law", "deviation"),
    [
        ({"law": "logistic"}, math.pi / math.sqrt(3)),
        ({"law": "student_t", "nu": 6}, math.sqrt(1.5)),
    ],
)
def test_sanitize_each_law_has_its_distribution(law, deviation):
    rows = make_table(4000)
    sanitizer = PcaLaplace(components=2, b=0.2, **law)
    fitted = fit_sanitizer(sanitizer, rows)
    released = run_sanitizer(sanitizer, rows, fitted=fitted)
    T = (read_cells(scale_rows(rows, fitted)) - 0.5) @ np.array(fitted["loadings"])
    noise = read_cells(released.rows) - T
    np.testing.assert_allclose(noise.std(axis=0), deviation * 0.2, rtol=0.05)
    public = released.public
    assert public.law == law["law"]
    assert public.facts.get("nu") == law.get("nu")
    # Mean change of a recipient's distances: the variance of the noise minus the dropped variance.
    dropped = sum(fitted["variances"][2:])
    mean = 2 * (deviation * 0.2) ** 2 - 2 * dropped
    assert public.facts["distance_distortion_mean"] == pytest.approx(mean, rel=0.1)


def test_fingerprint_other_law_or_shape_differs():
    rows = make_table(300)
    base = PcaLaplace(components=2, b=0.3)
    fitted = fit_sanitizer(base, rows)
    schema = scale_rows(rows, fitted).schema
    laws = [{}, {"law": "logistic"}, {"law": "student_t", "nu": 3}, {"law": "student_t", "nu": 4}]
    made = [PcaLaplace(components=2, b=0.3, **law) for law in laws]
    assert len({sanitizer.fingerprint(schema, fitted) for sanitizer in made}) == 4


def test_sanitize_per_component_scales_are_shares_of_ranges():
    rows = make_table(300)
    sanitizer = PcaLaplace(components=2, b=0.3, noise_shape="per_component")
    fitted = fit_sanitizer(sanitizer, rows)
    widths = np.ptp(np.array(fitted["ranges"]), axis=1)
    released = run_sanitizer(sanitizer, rows, fitted=fitted)
    np.testing.assert_allclose(released.public.scales, 0.3 * widths)
    promise = sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted)
    # exp(1/b) up to widening to the grid, at most two steps of b/1000.
    assert 1 / 0.3 <= promise.ln_component <= 1 / 0.3 + 0.003


def test_sanitize_components_on_grid_inside_ranges():
    released = run_sanitizer(PcaLaplace(components=3, b=0.3), make_table(300))
    Y, public = read_cells(released.rows), released.public
    assert np.array_equal(Y / public.grid, np.rint(Y / public.grid))
    low, high = public.ranges.T
    assert ((low <= Y) & (high >= Y)).all()
    assert [[c.low, c.high] for c in released.rows.schema.numeric] == public.ranges.tolist()


@pytest.mark.parametrize("scale", ["minmax", "zscore"])
def test_sanitize_original_space_maps_components_back(scale):
    rows = make_table(300)
    plain, back = (
        PcaLaplace(components=3, b=0.3, scale=scale, space=space)
        for space in ("components", "original")
    )
    fitted = fit_sanitizer(plain, rows)
    assert fit_sanitizer(back, rows) == fitted
    Z = read_cells(run_sanitizer(plain, rows, fitted=fitted).rows)
    released = run_sanitizer(back, rows, fitted=fitted)
    public = released.public
    expected = public.centre + Z @ np.linalg.pinv(public.loadings)
    np.testing.assert_allclose(read_cells(released.rows), expected, rtol=0, atol=1e-12)
    assert released.public.columns == rows.schema.names
    assert back.keeps_columns
    assert not plain.keeps_columns


def test_fingerprint_other_space_is_equal_other_mechanism_differs():
    rows = make_table(300)
    base = PcaLaplace(components=3, b=0.3)
    fitted = fit_sanitizer(base, rows)
    X = scale_rows(rows, fitted)

    def of(sanitizer=base, schema=X.schema, state=fitted):
        return sanitizer.fingerprint(schema, state)

    same = [
        PcaLaplace(components=3, b=0.3, space="original"),
        PcaLaplace(components=3, b=0.3, refit_waiver="DPO"),
        # Other parameters of the same mechanism must not give another draw to average.
        PcaLaplace(components=3, b=0.3, basis_share=0.4),
        PcaLaplace(components={"variance": 0.5}, b=0.3, basis="private"),
    ]
    assert {of(sanitizer) for sanitizer in same} == {of()}
    moved = json.loads(json.dumps(fitted))
    moved["loadings"][0][0] += LOADING_STEP
    others = [
        of(PcaLaplace(components=3, b=0.31)),
        of(PcaLaplace(components=3, b=0.3, noise_shape="per_component")),
        of(state=moved),
        of(schema=rows.schema),
        of(state={**fitted, "scaling": {**fitted["scaling"], "kind": "none"}}),
    ]
    assert len({of(), *others}) == 6
    assert of(state=json.loads(json.dumps(fitted))) == of()


def test_sanitize_other_basis_redraws_all_noise():
    rows = make_table(300)
    sanitizer = PcaLaplace(components=2, b=0.3)
    fitted = fit_sanitizer(sanitizer, rows)
    moved = json.loads(json.dumps(fitted))
    moved["loadings"][0][0] += LOADING_STEP
    one, two = (read_cells(run_sanitizer(sanitizer, rows, fitted=f).rows) for f in (fitted, moved))
    assert np.mean(np.any(one != two, axis=1)) > 0.99


def test_fit_json_round_trip_gives_same_release():
    rows = make_table(300)
    sanitizer = PcaLaplace(components=3, b=0.3, noise_shape="per_component")
    fitted = sanitizer.fit(rows)
    again = json.loads(json.dumps(fitted))
    assert again == fitted
    scaling = {"scaling": fit_sanitizer(sanitizer, rows)["scaling"]}
    X = scale_rows(rows, scaling)
    one, two = (
        read_cells(sanitizer.sanitize(X, Noise(KEY), {**state, **scaling}).rows)
        for state in (fitted, again)
    )
    assert np.array_equal(one, two)


@pytest.mark.parametrize("basis", ["sample", "private"])
def test_counts_clipped_scores_match_expected(basis):
    rows = make_table(300)
    sanitizer = PcaLaplace(
        components=2, b=0.5, noise_shape="per_component", basis=basis,
        score_ranges=[[-0.2, 0.2], [-9.0, 9.0]],
    )  # fmt: skip
    fitted = fit_sanitizer(sanitizer, rows)
    released = run_sanitizer(sanitizer, rows, fitted=fitted)
    T = (read_cells(scale_rows(rows, fitted)) - 0.5) @ np.array(fitted["loadings"])
    expected = int(np.sum(np.abs(T[:, 0]) > 0.2))
    assert 0 < expected < 300
    # The range is widened to the grid, by less than a step.
    assert abs(released.counts["clipped scores"] - expected) <= 2
    promise = sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted)
    assert promise.ln_record <= 2 / 0.5 + 0.01


def test_counts_reused_private_range_counts_clipped_scores():
    sanitizer = PcaLaplace(components=2, b=0.5, noise_shape="per_component", basis="private")
    rows = make_table(40)
    fitted = fit_sanitizer(sanitizer, rows)
    assert run_sanitizer(sanitizer, rows, fitted=fitted).counts["clipped scores"] == 0
    assert (
        run_sanitizer(sanitizer, make_table(2000, seed=2), fitted=fitted).counts["clipped scores"]
        > 0
    )


def test_guarantee_kind_follows_basis_bounds_and_scale():
    rows = make_table(300)

    def kind(schema=None, **parameters):
        sanitizer = PcaLaplace(components=2, b=0.3, **parameters)
        fitted = fit_sanitizer(sanitizer, rows)
        return sanitizer.guarantee(schema or scale_rows(rows, fitted).schema, fitted).kind

    from_data = Schema(tuple(Numeric(f"x{j}", 0.0, 1.0, True) for j in range(5)))
    assert kind() == "bounded"
    assert kind(scale="zscore") == "bounded"
    assert kind(basis="private") == "bounded_given_basis"
    assert kind(basis="file", basis_file="b.json") == "bounded"
    assert kind(basis="file", basis_file="b.json", scale="zscore") == "bounded_given_basis"
    assert kind(schema=from_data) == "bounded_given_basis"


def test_guarantee_private_ranges_bound_no_record():
    """Only scores clipped to ranges that were declared, or come from other records, bound it."""
    rows = make_table(300)

    def find_ln_record(**parameters):
        sanitizer = PcaLaplace(components=2, b=0.3, noise_shape="per_component", **parameters)
        return sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted).ln_record

    fitted = fit_sanitizer(PcaLaplace(components=2, b=0.3, basis="private"), rows)
    private = find_ln_record(basis="private")
    declared = find_ln_record(basis="private", score_ranges=fitted["ranges"])
    given = find_ln_record(basis="file", basis_file="b.json")
    assert declared == given == pytest.approx(2 / 0.3, rel=0.01)
    assert private > 1.05 * given  # over all records within the bounds
