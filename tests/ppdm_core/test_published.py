"""Rows and queries that a recipient computes from the manifest."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ppdm_core.miners import MINERS
from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.release import Released
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.grid_noise import GridNoise, grid_ranges, invert_limits
from ppdm_core.numerics.linear_map import project
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS, find_distribution
from ppdm_core.numerics.scaling import SCALES, Scaling
from ppdm_core.published import Published
from ppdm_core.sanitizers import make_sanitizer
from tasks.publish.manifest_body import describe_scaling
from tests.support.tables import fit_sanitizer, make_table, read_cells, run_sanitizer
from warehouse.json_codec import to_json

ROWS = make_table(80, 4)


def publish(method: str, **parameters: Any) -> tuple[Published, Released]:
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit_sanitizer(sanitizer, ROWS)
    released = run_sanitizer(sanitizer, ROWS, bytes(32), fitted)
    manifest = {
        "public": to_json(released.public),
        "scaling": describe_scaling(Scaling.from_dict(fitted["scaling"]), ROWS.schema),
        "features": [*ROWS.schema.names, "colour"],
        "label": "label",
    }
    return Published.from_manifest(json.loads(json.dumps(manifest))), released


def scale_by_hand(X: np.ndarray) -> np.ndarray:
    return (X - ROWS.schema.lows) / (ROWS.schema.highs - ROWS.schema.lows)


PCA = {"components": 2, "b": 0.05, "basis": "private"}


def test_queries_are_projected_as_records() -> None:
    manifest_view, released = publish("pca_laplace", **PCA)
    assert manifest_view.numeric == ROWS.schema.names and manifest_view.label == "label"
    public = released.public
    assert public.loadings is not None and public.centre is not None
    expected = (scale_by_hand(ROWS.whole.X) - 0.5) @ public.loadings
    assert np.allclose(manifest_view.queries(ROWS.whole.X), expected)
    Y = read_cells(released.rows)
    assert np.array_equal(manifest_view.rows(Y), Y)
    # Noise only: about 0.07 per component.
    assert np.std(manifest_view.rows(Y) - manifest_view.queries(ROWS.whole.X)) < 0.12


def test_queries_beyond_bounds_are_clamped() -> None:
    manifest_view, _ = publish("pca_laplace", **PCA)
    assert np.allclose(
        manifest_view.queries(ROWS.schema.highs + 5.0), manifest_view.queries(ROWS.schema.highs)
    )


WIDE = np.vstack([ROWS.schema.lows - 7.0, ROWS.schema.highs + 7.0, ROWS.whole.X])
METHODS: dict[str, dict[str, Any]] = {
    "pca_laplace": PCA,
    "additive_noise": {"b": 0.05},
    "kde_resample": {},
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("method", METHODS)
def test_queries_every_scale_clipped_as_records_are(method: str, scale: str) -> None:
    """The columns that the method receives, which it then projects and adds noise to."""
    manifest_view, released = publish(method, scale=scale, **METHODS[method])
    X = read_cells(manifest_view.scaling.apply(ArrayRows(ROWS.schema, WIDE)))
    public = released.public
    expected = X if public.loadings is None else project(public, X)
    assert np.array_equal(manifest_view.queries(WIDE), expected)
    assert not np.array_equal(manifest_view.queries(WIDE[:2]), manifest_view.queries(WIDE[2:4]))


@pytest.mark.parametrize("law", ["laplace", "logistic"])
def test_queries_scores_beyond_range_clipped_as_scores_are(law: str) -> None:
    ranges = [[-0.11, 0.2], [-0.05, 0.06]]
    per_component = {"noise_shape": "per_component", "score_ranges": ranges, "law": law}
    manifest_view, released = publish("pca_laplace", **{**PCA, "b": 0.5}, **per_component)
    public = released.public
    assert public.grid is not None
    scores = manifest_view.queries(ROWS.whole.X)
    low, high = scores.min(axis=0), scores.max(axis=0)
    # The sanitizer widens its ranges to the grid.
    assert np.all(np.abs(np.column_stack([low, high]) - ranges) <= public.grid[:, None])
    free = project(public, read_cells(manifest_view.scaling.apply(ROWS)))
    assert np.mean(scores != free) > 0.2
    # Noise of the release has mean zero around the query, also for clipped records.
    noise = manifest_view.rows(read_cells(released.rows)) - scores
    assert np.all(np.abs(noise.mean(axis=0)) < 4 * noise.std(axis=0) / np.sqrt(len(noise)))


@pytest.mark.parametrize("law", SAMPLED_DISTRIBUTIONS)
def test_find_score_ranges_inverse_of_published_limits(law: str) -> None:
    ranges = np.array([[-0.3, 0.4], [-1.0, 1.0]])
    distribution = find_distribution(law, 5.0 if law == "student_t" else None)
    b, g = np.array([0.5, 0.7]), np.array([2.0**-12, 2.0**-11])
    limits = GridNoise(distribution, b, g, ranges).limits * g[:, None]
    found = invert_limits(distribution, limits, b, g)
    assert np.array_equal(found, grid_ranges(ranges, g) * g[:, None])


def test_rows_both_spaces_give_same_components() -> None:
    manifest_view, released = publish("pca_laplace", **PCA)
    back, mapped = publish("pca_laplace", space="original", **PCA)
    scaling = {"kind": "minmax", "offset": ROWS.schema.lows, "unit": ROWS.schema.widths}
    leaving = Scaling.from_dict(scaling).undo(read_cells(mapped.rows))
    assert np.allclose(back.rows(leaving), manifest_view.rows(read_cells(released.rows)), atol=1e-9)
    assert np.allclose(back.queries(ROWS.whole.X), manifest_view.queries(ROWS.whole.X))


def test_rows_original_columns_are_scaled() -> None:
    manifest_view, released = publish("kde_resample")
    leaving = manifest_view.scaling.undo(read_cells(released.rows))
    assert np.allclose(manifest_view.rows(leaving), read_cells(released.rows))
    assert np.allclose(manifest_view.queries(ROWS.whole.X), scale_by_hand(ROWS.whole.X)) or (
        manifest_view.scaling.kind != "minmax"
    )


def test_queries_secret_map_raises() -> None:
    manifest_view, released = publish("random_rotation")
    assert np.array_equal(manifest_view.rows(read_cells(released.rows)), read_cells(released.rows))
    with pytest.raises(NotApplicable, match="ask the steward"):
        manifest_view.queries(ROWS.whole.X)
    stays = replace(manifest_view, public=replace(manifest_view.public, space="original"))
    assert stays.queries(ROWS.whole.X).shape == (80, 4)


def test_rows_other_columns_raise() -> None:
    manifest_view, _ = publish("pca_laplace", **PCA)
    with pytest.raises(BadInput, match=r"\(80, 3\) does not have the 4 columns .* Select these"):
        manifest_view.queries(ROWS.whole.X[:, :3])
    with pytest.raises(BadInput, match="does not have the 2 columns component_1 to component_2"):
        manifest_view.rows(ROWS.whole.X)


def test_queries_frame_in_other_order_same_answers() -> None:
    manifest_view, released = publish("pca_laplace", **PCA)
    model = MINERS["knn"]().fit(manifest_view.rows(read_cells(released.rows)), ROWS.whole.label)
    frame = pd.DataFrame(ROWS.whole.X, columns=ROWS.schema.names)
    answers = model.predict(manifest_view.queries(ROWS.whole.X))
    assert np.mean(answers == ROWS.whole.label) > 0.7
    for names in (ROWS.schema.names, ROWS.schema.names[::-1]):
        assert np.array_equal(model.predict(manifest_view.queries(frame[list(names)])), answers)
    assert np.mean(model.predict(manifest_view.queries(ROWS.whole.X[:, ::-1])) == answers) < 0.9


def test_queries_label_and_features_may_be_there_others_not() -> None:
    manifest_view, _ = publish("pca_laplace", **PCA)
    frame = pd.DataFrame(ROWS.whole.X, columns=ROWS.schema.names)
    known = frame.assign(label="no", colour="red")
    assert np.array_equal(manifest_view.queries(known), manifest_view.queries(frame))
    with pytest.raises(BadInput, match=r"Column 'age' is not a column of the release\. Leave"):
        manifest_view.queries(frame.assign(age=3))
