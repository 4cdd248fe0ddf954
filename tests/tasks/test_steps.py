"""What one release stores for the next ones, by the steps without Prefect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw, validate
from tasks.sanitize.task import draw_candidate
from tests.support.contexts import make_context, open_run
from warehouse.clock import now
from warehouse.columns import Column
from warehouse.stage_facts import SanitizedFacts, ValidatedFacts, read_facts

SAMPLE = {"components": 1, "b": 0.5, "basis": "sample", "basis_share": 0.3}


def write(path: Path, values: np.ndarray) -> None:
    lines = [f"p{i},{','.join(map(repr, row))}" for i, row in enumerate(values.tolist())]
    path.write_text("id,x,y\n" + "\n".join(lines) + "\n")


@pytest.fixture
def context(tmp_path: Path) -> ReleaseContext:
    write(tmp_path / "t.csv", np.random.default_rng(1).random((60, 2)))
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric"}
    columns = (
        Column("id", "identifier"),
        Column("x", low=0.0, high=1.0, **numeric),
        Column("y", low="from_data", high="from_data", **numeric),
    )
    return make_context(
        tmp_path,
        columns=columns,
        method="pca_laplace",
        parameters=SAMPLE,
    )


@dataclass(frozen=True)
class Drawn:
    """The stored facts of a release and the source rows of its candidate."""

    validated: ValidatedFacts
    sanitized: SanitizedFacts
    places: set[int]  # source rows of the candidate


def make_release(context: ReleaseContext, *, published: bool = True) -> Drawn:
    """Make a release up to its draws, and record it as published unless `published` is false."""
    release_id = begin_release.fn(context)
    for step in (load_raw, validate, draw_candidate):
        step.fn(context, release_id)
    store, run = open_run(context, release_id)
    with store.transaction() as db:
        sanitized = read_facts(db, release_id, SanitizedFacts)
        validated = read_facts(db, release_id, ValidatedFacts)
        rows = db.execute(f'select __ppdm_row from sanitized."{run.table}_candidate"').fetchall()
        if published:
            values = [run.dataset, run.number, release_id, "d", "m", now()]
            db.execute("insert into published.version values (?, ?, ?, ?, ?, ?)", values)
    return Drawn(validated, sanitized, {place for (place,) in rows})


@pytest.mark.extended
def test_draw_candidate_second_fit_needs_waiver(context: ReleaseContext) -> None:
    make_release(context)
    two = {**SAMPLE, "components": 2}
    with pytest.raises(BadInput, match="a second time") as caught:
        make_release(replace(context, file_digest="g", parameters=two))
    assert "refit_waiver" in str(caught.value)
    make_release(replace(context, file_digest="h", parameters={**two, "refit_waiver": "the DPO"}))


@pytest.mark.extended
def test_draw_candidate_identifier_named_like_component_bad_input(
    context: ReleaseContext, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text(table.read_text().replace("id,", "Component_1,", 1))
    columns = (Column("Component_1", "identifier"), *context.columns[1:])
    with pytest.raises(BadInput, match="'Component_1' has the name of a column"):
        make_release(replace(context, columns=columns, record_id="Component_1"))


@pytest.mark.extended
def test_draw_candidate_resampled_rows_shuffled_with_records(context: ReleaseContext) -> None:
    first = make_release(context)  # sets records aside, which must not be drawn later either
    parameters = {"rows": 300, "bandwidth": "paper", "refit_waiver": "the DPO"}
    drawn = replace(context, file_digest="g", method="kde_resample", parameters=parameters)
    assert make_release(drawn).places <= first.places
    store, run = open_run(drawn, "table-0002")
    X = np.loadtxt(Path(context.source.path), delimiter=",", skiprows=1, usecols=(1, 2))
    with store.transaction() as db:
        query = f'select __ppdm_row, x, y from sanitized."{run.table}_candidate" order by '
        found = np.array(db.execute(query + "__ppdm_order").fetchall())
    assert len(found) == 300
    place = found[:, 0].astype(int)
    assert np.abs(found[:, 1:] - X[place]).max() < 0.3
    assert np.abs(found[:, 1:] - X[place[::-1]]).max() > 0.6  # which distinguishes other records
    assert abs(np.corrcoef(place, np.arange(300))[0, 1]) < 0.3


@pytest.mark.extended
def test_draw_candidate_integers_stay_integers(context: ReleaseContext, tmp_path: Path) -> None:
    """With these bounds, scaling there and back changes the last bit."""
    counts = np.random.default_rng(3).integers(0, 50, (60, 2)).astype(np.float64)
    write(tmp_path / "t.csv", counts)
    columns = (
        context.columns[0],
        *(replace(c, low=-0.1, high=50.3) for c in context.columns[1:]),
    )
    parameters = {"integers": ["x"], "rows": 200}
    make_release(replace(context, columns=columns, method="kde_resample", parameters=parameters))
    store, run = open_run(context, "table-0001")
    with store.transaction() as db:
        query = f'select x, y from sanitized."{run.table}_candidate"'
        x, y = np.array(db.execute(query).fetchall()).T
    assert np.array_equal(x, np.rint(x)) and len(np.unique(x)) > 20
    assert np.count_nonzero(y == np.rint(y)) < 20


@pytest.mark.slow
def test_draw_candidate_unpublished_fit_not_binding(context: ReleaseContext) -> None:
    make_release(context, published=False)
    make_release(replace(context, file_digest="g", parameters={**SAMPLE, "components": 2}))


@pytest.mark.extended
def test_draw_candidate_changed_records_fit_reused(context: ReleaseContext, tmp_path: Path) -> None:
    first = make_release(context)
    write(tmp_path / "t.csv", np.random.default_rng(2).random((60, 2)))
    again, before = (each.sanitized.public.loadings for each in (make_release(context), first))
    assert again is not None and before is not None and np.array_equal(again, before)


@pytest.mark.slow
def test_draw_candidate_other_method_excludes_records_set_aside(
    context: ReleaseContext,
) -> None:
    first = make_release(context)
    assert 0 < first.sanitized.set_aside < 60
    rotated = make_release(
        replace(context, file_digest="g", method="random_rotation", parameters={})
    )
    assert rotated.places == first.places


@pytest.mark.extended
def test_validate_bounds_from_data_taken_once_in_two_digits(
    context: ReleaseContext, tmp_path: Path
) -> None:
    first = make_release(context)
    X = np.random.default_rng(1).random((60, 2))
    X[7, 1] = 5.4321
    write(tmp_path / "t.csv", X)
    second = make_release(context)
    for facts in (first, second):
        _, bounds = facts.validated.schema.numeric
        assert bounds.from_data is True
        assert (bounds.low, bounds.high) == (0.0058, 0.99)
    assert second.validated.clamped["y"] == 1
    assert any("two digits" in line for line in second.sanitized.guarantee.assumptions)
