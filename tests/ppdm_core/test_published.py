"""Rows and queries that a recipient computes from the manifest."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.release import Released
from ppdm_core.numerics.scaling import Scaling
from ppdm_core.published import Published
from ppdm_core.sanitizers import make_sanitizer
from tests.support.tables import fit_sanitizer, make_table, read_cells, run_sanitizer
from warehouse.json_codec import to_json

ROWS = make_table(80, 4)


def publish(method: str, **parameters: Any) -> tuple[Published, Released]:
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit_sanitizer(sanitizer, ROWS)
    released = run_sanitizer(sanitizer, ROWS, bytes(32), fitted)
    manifest = {
        "public": to_json(released.public),
        "scaling": fitted["scaling"],
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
    with pytest.raises(BadInput, match=r"\(80, 3\) does not have the 4 columns .* Select them"):
        manifest_view.queries(ROWS.whole.X[:, :3])
    with pytest.raises(BadInput, match="does not have the 2 columns component_1 to component_2"):
        manifest_view.rows(ROWS.whole.X)
