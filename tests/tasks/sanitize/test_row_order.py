"""The order of released rows, which follows from the content of the release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import make_sanitizer
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw
from tasks.judge.ledger_charge import list_draws
from tasks.sanitize.release_writer import stream_released_rows
from tasks.sanitize.row_order import digest_content, sum_labels
from tasks.sanitize.task import draw_candidate
from tests.support.contexts import make_context, open_run, write_unchecked
from tests.support.tables import KEY as DATASET_KEY
from tests.support.tables import LABEL, adapt_columns, fit_sanitizer, make_table, scale_rows
from warehouse.columns import Column
from warehouse.ordered_parts import ORDER
from warehouse.sanitized_tables import write_candidate
from warehouse.sql import KEY, ROW
from warehouse.stage_facts import SanitizedFacts, read_facts
from warehouse.tables import candidate_table

METHODS: dict[str, dict[str, Any]] = {
    "additive_noise": {"b": 0.5},
    "pca_laplace": {"components": 2, "b": 0.5, "basis": "private"},
    "random_rotation": {},
    "kde_resample": {"rows": 40},  # several rows of a record
    "randomized_response": {"gamma": {"attribute": 3}},  # several draws of a record, equal rows
}
N, CHANGED = 200, 40


def release_bytes(
    rows: ArrayRows, method: str, folder: Path, fitted_on: ArrayRows | None = None
) -> tuple[bytes, np.ndarray]:
    """Return the file of a release, and its ranks."""
    sanitizer = make_sanitizer(method, METHODS[method])
    adapted = adapt_columns(rows, sanitizer)
    fitted = fit_sanitizer(sanitizer, adapt_columns(fitted_on or rows, sanitizer))
    X, noise = scale_rows(adapted, fitted), Noise(DATASET_KEY)
    candidate = sanitizer.sanitize(X, noise, fitted)
    label = Column("label", "label", "categorical", categories=LABEL.categories)
    path = folder / "candidate"
    path.unlink(missing_ok=True)
    draws = list_draws(X, candidate, sanitizer, noise, fitted, None)
    content = digest_content(draws, X, noise)
    rows = stream_released_rows(candidate, noise, label, None, content).read_all()
    columns = (*candidate.public.names, "label")
    write_candidate(rows.to_reader(), len(rows), columns, path, folder)
    return path.read_bytes(), rows[ORDER].to_numpy()


def select(rows: ArrayRows, order: Any) -> ArrayRows:
    whole = rows.whole
    return ArrayRows(rows.schema, whole.X[order], whole.label[order], whole.key[order])


@pytest.mark.extended
@settings(max_examples=10, deadline=None)
@given(
    n=st.integers(4, 40),
    seed=st.integers(0, 2**32 - 1),
    method=st.sampled_from([*METHODS]),
)
def test_release_permuted_source_same_bytes(
    n: int, seed: int, method: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows, folder = make_table(n, seed=seed % 1000), tmp_path_factory.mktemp("order")
    order = np.random.default_rng(seed).permutation(n)
    if method == "kde_resample":
        rows = ArrayRows(rows.schema, rows.whole.X, np.zeros(n, np.int32), rows.whole.key)
    one, _ = release_bytes(rows, method, folder)
    two, _ = release_bytes(select(rows, order), method, folder, fitted_on=rows)
    assert one == two


@pytest.mark.extended
@settings(max_examples=10, deadline=None)
@given(
    n=st.integers(4, 40),
    record=st.integers(0, 3),
    what=st.sampled_from(["value", "label", "removed"]),
)
def test_release_one_record_changed_all_ranks_other(
    n: int, record: int, what: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows, folder = make_table(n), tmp_path_factory.mktemp("order")
    whole = rows.whole
    X, label, keep = whole.X.copy(), whole.label.copy(), np.ones(n, dtype=bool)
    if what == "value":
        X[record, 0] = X[record, 0] / 2 + 0.1
    elif what == "label":
        label[record] = 1 - label[record]
    else:
        keep[record] = False
    changed = ArrayRows(rows.schema, X[keep], label[keep], whole.key[keep])
    _, before = release_bytes(rows, "additive_noise", folder)
    _, after = release_bytes(changed, "additive_noise", folder)
    assert not set(before.tolist()) & set(after.tolist())


def test_sum_labels_exchanged_labels_other_sum() -> None:
    rows, noise = make_table(6), Noise(DATASET_KEY)
    label = np.array([0, 1, 0, 1, 0, -1], dtype=np.int32)
    exchanged = label[[1, 0, 2, 3, 4, 5]]
    sums = [
        sum_labels(ArrayRows(rows.schema, rows.whole.X, each, rows.whole.key), noise)
        for each in (label, exchanged, label)
    ]
    assert sums[0] == sums[2] != sums[1]


def test_write_candidate_equal_ranks_order_of_keys(tmp_path: Path) -> None:
    """Where ranks are equal, the source order must not decide."""
    keys = [bytes([i]) * 16 for i in range(40)]
    files = []
    for order in (range(40), range(39, -1, -1)):
        table = pa.table(
            {
                "x": [float(i) for i in order],
                ORDER: pa.array([7] * 40, pa.uint64()),
                ROW: pa.array(range(40), pa.int64()),
                KEY: pa.array([keys[i] for i in order], pa.binary(16)),
            }
        )
        path = tmp_path / f"{order.start}.parquet"
        write_candidate(table.to_reader(), len(table), ("x",), path, tmp_path)
        files.append(path.read_bytes())
    assert files[0] == files[1]


@pytest.fixture
def context(tmp_path: Path) -> ReleaseContext:
    return make_context(tmp_path)


def draw(context: ReleaseContext, values: np.ndarray, order: Any = None) -> tuple[np.ndarray, Any]:
    """Draw a release of a table; return the published rows and the record of each."""
    lines = [f"p{i},{','.join(map(repr, row))}" for i, row in enumerate(values.tolist())]
    lines = lines if order is None else [lines[i] for i in order]
    Path(context.source.path).write_text("id,x,y\n" + "\n".join(lines) + "\n")
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    write_unchecked(context, release_id)
    draw_candidate.fn(context, release_id)
    store, run = open_run(context, release_id)
    table = pq.read_table(store.home.candidate(release_id))
    with store.transaction() as db:
        query = f"select {ROW} from {candidate_table(run)} order by {ORDER}"
        place = db.execute(query).fetchnumpy()[ROW]
        digest = read_facts(db, release_id, SanitizedFacts).data_digest
    return np.column_stack([table["x"], table["y"]]), (place, digest)


def link_by_neighbours(old: np.ndarray, new: np.ndarray) -> dict[int, int]:
    """Return, for each old row that is gone, the new row behind the same unchanged row.

    The attacker knows no key and no record: rows are equal or not, and stand in some order.
    """
    same = set(map(bytes, old)) & set(map(bytes, new))

    def read_followers(rows: np.ndarray) -> dict[bytes, int]:
        found, last = {}, b""
        for place, row in enumerate(map(bytes, rows)):
            if row in same:
                last = row
            else:
                found.setdefault(last, place)
        return found

    before, after = read_followers(old), read_followers(new)
    return {place: after[row] for row, place in before.items() if row in after}


@pytest.mark.extended
def test_draw_candidate_changed_records_not_linked_by_order(context: ReleaseContext) -> None:
    rng = np.random.default_rng(1)
    X = rng.random((N, 2))
    old, (old_record, _) = draw(context, X)
    changed = rng.permutation(N)[:CHANGED]
    X[changed] = rng.random((CHANGED, 2))
    new, (new_record, _) = draw(context, X)
    links = link_by_neighbours(old, new)
    right = sum(old_record[a] == new_record[b] for a, b in links.items())
    assert right <= 8, f"{right} of {CHANGED} changed records are linked by their neighbours"
    # All other records are at independent places, too: one deviation is 1 / sqrt(N).
    places = np.argsort(old_record), np.argsort(new_record)
    assert abs(np.corrcoef(*places)[0, 1]) < 5 / np.sqrt(N)
    assert abs(np.corrcoef(places[0][changed], places[1][changed])[0, 1]) < 5 / np.sqrt(CHANGED)


@pytest.mark.extended
def test_draw_candidate_same_records_in_another_order_same_file(context: ReleaseContext) -> None:
    X = np.random.default_rng(1).random((N, 2))
    (_, (_, first)), (_, (_, again)) = draw(context, X), draw(replace(context, file_digest="g"), X)
    _, (_, permuted) = draw(context, X, np.random.default_rng(2).permutation(N))
    assert first == again == permuted


@pytest.mark.extended
def test_draw_candidate_without_ids_every_release_shuffled_anew(context: ReleaseContext) -> None:
    X = np.random.default_rng(1).random((N, 2))
    context = replace(context, record_id=None)
    _, (first, _) = draw(context, X)
    _, (second, _) = draw(replace(context, file_digest="g"), X)
    places = np.argsort(first), np.argsort(second)
    assert abs(np.corrcoef(*places)[0, 1]) < 5 / np.sqrt(N)
