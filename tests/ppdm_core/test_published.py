"""What a recipient makes of the manifest."""

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
from tasks.stage_facts import public_to_dict
from tests.support.tables import fit, release, table, values

ROWS = table(80, 4)


def published(method: str, **parameters: Any) -> tuple[Published, Released]:
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit(sanitizer, ROWS)
    released = release(sanitizer, ROWS, bytes(32), fitted)
    manifest = {
        "public": public_to_dict(released.public),
        "scaling": fitted["scaling"],
        "features": [*ROWS.schema.names, "colour"],
        "label": "label",
    }
    return Published.from_manifest(json.loads(json.dumps(manifest))), released


def by_hand(X: np.ndarray) -> np.ndarray:
    return (X - ROWS.schema.lows) / (ROWS.schema.highs - ROWS.schema.lows)


PCA = {"components": 2, "b": 0.05, "basis": "private"}


def test_queries_are_projected_as_the_records_were() -> None:
    told, released = published("pca_laplace", **PCA)
    assert told.numeric == ROWS.schema.names and told.label == "label"
    public = released.public
    assert public.loadings is not None and public.centre is not None
    expected = (by_hand(ROWS.whole.X) - 0.5) @ public.loadings
    assert np.allclose(told.queries(ROWS.whole.X), expected)
    Y = values(released.rows)
    assert np.array_equal(told.rows(Y), Y)
    # Noise only: about 0.07 a component.
    assert np.std(told.rows(Y) - told.queries(ROWS.whole.X)) < 0.12


def test_queries_beyond_the_bounds_count_as_the_bounds() -> None:
    told, _ = published("pca_laplace", **PCA)
    assert np.allclose(told.queries(ROWS.schema.highs + 5.0), told.queries(ROWS.schema.highs))


def test_both_spaces_give_the_same_components() -> None:
    told, released = published("pca_laplace", **PCA)
    back, mapped = published("pca_laplace", space="original", **PCA)
    leaving = Scaling.from_dict({"kind": "minmax", "offset": ROWS.schema.lows,
                                 "unit": ROWS.schema.widths}).undo(values(mapped.rows))  # fmt: skip
    assert np.allclose(back.rows(leaving), told.rows(values(released.rows)), atol=1e-9)
    assert np.allclose(back.queries(ROWS.whole.X), told.queries(ROWS.whole.X))


def test_columns_that_stay() -> None:
    told, released = published("kde_resample")
    leaving = told.scaling.undo(values(released.rows))
    assert np.allclose(told.rows(leaving), values(released.rows))
    assert np.allclose(told.queries(ROWS.whole.X), by_hand(ROWS.whole.X)) or (
        told.scaling.kind != "minmax"
    )


def test_a_secret_map_must_be_asked_for() -> None:
    told, released = published("random_rotation")
    assert np.array_equal(told.rows(values(released.rows)), values(released.rows))
    with pytest.raises(NotApplicable, match="ask the steward"):
        told.queries(ROWS.whole.X)
    stays = replace(told, public=replace(told.public, space="original"))
    assert stays.queries(ROWS.whole.X).shape == (80, 4)


def test_other_columns_are_refused_in_one_sentence() -> None:
    told, _ = published("pca_laplace", **PCA)
    with pytest.raises(BadInput, match=r"\(80, 3\) does not have the 4 columns .* Select them"):
        told.queries(ROWS.whole.X[:, :3])
    with pytest.raises(BadInput, match="does not have the 2 columns component_1 to component_2"):
        told.rows(ROWS.whole.X)
