"""The earlier releases that the audit passes to attacks, as their subscribers have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppdm_core.attacks.release_averaging import ReleaseAveraging
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import EarlierReleases
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Attacker, Policy
from tasks.audit.attack_inputs import make_job, read_inputs
from tasks.audit.release_job import ReleaseJob
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw
from tasks.sanitize.task import draw_candidate
from tests.support.contexts import make_context, open_run, write_unchecked
from warehouse.clock import now
from warehouse.columns import Column
from warehouse.home import Home
from warehouse.integrity.dataset_key import dataset_key_path
from warehouse.integrity.events import append_event
from warehouse.integrity.key_files import write_key
from warehouse.publishing.published_rows import store_published_rows
from warehouse.stage_facts import SanitizedFacts, read_facts
from warehouse.stages import Stage

N, B = 60, 0.1
POLICY = Policy(required=(), limits={}, attacker=Attacker(), shadow_draws=1, splits=0)


def make_values(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(2.0, 8.0, (N, 2))


def write(context: ReleaseContext, values: np.ndarray, first: int = 0) -> None:
    """Write the source with the columns x and y, also if the context excludes one of them."""
    lines = [f"p{i},{','.join(map(repr, row))}" for i, row in enumerate(values.tolist(), first)]
    Path(context.source.path).write_text("id,x,y\n" + "\n".join(lines) + "\n")


@pytest.fixture
def context(tmp_path: Path) -> ReleaseContext:
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 10.0}
    context = make_context(
        tmp_path,
        columns=(Column("id", "identifier"), Column("x", **numeric), Column("y", **numeric)),
        parameters={"b": B},
        policy=POLICY,
        keep_raw=9,
    )
    key = dataset_key_path(Home(tmp_path / "home"), "table")
    write_key(key, bytes(range(32)))  # the same noise in each run of the tests
    return context


def make_release(context: ReleaseContext, values: np.ndarray, first: int = 0) -> ReleaseJob:
    """Make a release, record it as published, and return the inputs of its attacks."""
    write(context, values, first)
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    write_unchecked(context, release_id)
    draw_candidate.fn(context, release_id)
    store, run = open_run(context, release_id)
    work = store.home.work(release_id)
    with store.transaction() as db:
        job = make_job(context, run, read_inputs(db, context, run, work))
        columns = read_facts(db, release_id, SanitizedFacts).public.columns
        row = [run.dataset, run.number, release_id, "d", "m", now()]
        db.execute("insert into published.version values (?, ?, ?, ?, ?, ?)", row)
        digest = store_published_rows(db, run, columns)
        append_event(db, run.dataset, release_id, Stage.PUBLISHED, {"rows": digest})
        db.execute("update meta.run set stage = 'published' where release_id = ?", [release_id])
    return job


def read_past(job: ReleaseJob) -> EarlierReleases:
    assert job.earlier is not None
    return job.earlier


def test_earlier_releases_first_release_no_versions(context: ReleaseContext) -> None:
    job = make_release(context, make_values(1))
    past, shadow = read_past(job), job.make_auditor().draws[0].Y
    assert past.versions == () and np.isnan(past.unchanged_rows).all()
    one_draw = float(np.abs(np.clip(shadow, 0, 1) - job.make_auditor().truth.X).mean())
    assert compute_mean_error(job) == pytest.approx(one_draw)


@pytest.mark.extended
def test_earlier_releases_unchanged_table_same_rows(context: ReleaseContext) -> None:
    make_release(context, make_values(1))
    past = read_past(make_release(context, make_values(1)))
    (version,) = past.versions
    np.testing.assert_array_equal(version.rows, np.arange(N))
    np.testing.assert_array_equal(past.unchanged_rows, version.Y)
    # In the scale that records are attacked in, 0 to 1 for 0 to 10.
    assert 0 < np.abs(version.Y - make_values(1) / 10).mean() < 3 * B


@pytest.mark.extended
def test_earlier_releases_changed_records_only_these_redrawn(context: ReleaseContext) -> None:
    one, two = make_values(1), make_values(1)
    two[:20] += 0.5
    make_release(context, one)
    past = read_past(make_release(context, two))
    assert np.isnan(past.unchanged_rows[:20]).all() and np.isfinite(past.unchanged_rows[20:]).all()
    (version,) = past.versions
    assert np.isfinite(version.Y).all()
    np.testing.assert_array_equal(past.unchanged_rows[20:], version.Y[20:])


@pytest.mark.slow
def test_earlier_releases_repeated_rows_counted_once(context: ReleaseContext) -> None:
    """The first 20 records change each time, the last 20 never, and the others once."""
    values = make_values(1)
    for week in range(4):
        values[:20] += 0.25
        values[20:40] += 0.25 if week == 2 else 0.0
        job = make_release(context, values)
    (versions,) = read_past(job).versions
    np.testing.assert_array_equal(np.bincount(versions.rows), np.repeat([3, 2, 1], 20))
    is_unchanged = np.isfinite(read_past(job).unchanged_rows[:, 0])
    np.testing.assert_array_equal(is_unchanged, np.arange(N) >= 20)


@pytest.mark.slow
def test_earlier_releases_other_settings_separate_versions(context: ReleaseContext) -> None:
    make_release(context, make_values(1))
    other = replace(context, file_digest="g", parameters={"b": 4 * B})
    make_release(other, make_values(1))
    past = read_past(make_release(context, make_values(1)))
    assert np.isfinite(past.unchanged_rows).all()
    scales = {float(version.public.scales[0]): version.Y for version in past.versions}  # type: ignore[index]
    assert sorted(scales) == pytest.approx([B, 4 * B], rel=0.1)
    errors = [np.abs(scales[b] - make_values(1) / 10).mean() for b in sorted(scales)]
    assert errors[1] > 2 * errors[0]


@pytest.mark.slow
def test_earlier_releases_other_bounds_rescaled_values(context: ReleaseContext) -> None:
    make_release(context, make_values(1))
    columns = (context.columns[0], *(replace(c, high=20.0) for c in context.columns[1:]))
    wider = replace(context, file_digest="g", columns=columns)
    (version,) = read_past(make_release(wider, make_values(1))).versions
    error = version.Y - make_values(1) / 20
    assert np.abs(error.mean()) < B / 4 and np.abs(error).mean() < 2 * B
    # The noise then, in the scale of now: half as wide.
    public = version.public
    assert public.loadings is not None and public.centre is not None
    x = np.array([[0.25, 0.3]])  # 5 and 6 of 20; then 0.5 and 0.6, of which it takes 0.5
    np.testing.assert_allclose((x - public.centre) @ public.loadings, [[0.0, 0.1]], atol=1e-9)


@pytest.mark.extended
@pytest.mark.parametrize(
    "changed",
    [{"record_id": None}, {"method": "kde_resample", "parameters": {"rows": N}}],
    ids=["no ids", "rows of no record"],
)
def test_earlier_releases_without_record_rows_none(
    context: ReleaseContext, changed: dict[str, Any]
) -> None:
    make_release(context, make_values(1))
    job = make_release(replace(context, file_digest="g", **changed), make_values(2))
    assert job.earlier is None
    with pytest.raises(NotApplicable, match=r"put together by record \(record_id"):
        job.make_auditor().run("release_averaging")


def replace_columns(context: ReleaseContext, names: str, digest: str) -> ReleaseContext:
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 10.0}
    left = (Column(name, "exclude") for name in "xy" if name not in names)
    columns = (context.columns[0], *(Column(name, **numeric) for name in names), *left)
    return replace(context, columns=columns, file_digest=digest)


@pytest.mark.slow
def test_earlier_releases_reordered_columns_same_values(context: ReleaseContext) -> None:
    """The noise is redrawn for each order of columns, so that averaging reduces it."""
    X = make_values(1)
    make_release(replace_columns(context, "xy", "a"), X)
    make_release(replace_columns(context, "yx", "b"), X)  # the file has x and y all the same
    job = make_release(replace_columns(context, "xy", "c"), X)
    past = read_past(job)
    assert sorted(len(version.rows) for version in past.versions) == [N, N]
    assert np.isfinite(past.unchanged_rows).all()
    turned = next(version for version in past.versions if version.public.scales is None)
    error = turned.Y - X / 10
    assert np.abs(error.mean(axis=0)).max() < B / 2 and np.abs(error).mean() < 2 * B
    truth, draw = job.make_auditor().truth, job.make_auditor().draws[0]
    (played,) = Auditor(truth, [draw], POLICY, b"s", earlier=past).run_trials(ReleaseAveraging())
    single = float(np.abs(np.clip(past.unchanged_rows, 0, 1) - truth.X).mean())
    assert np.abs(played.candidates["mean"] - truth.X).mean() < 0.85 * single


@pytest.mark.slow
def test_earlier_releases_new_column_missing_in_earlier_version(context: ReleaseContext) -> None:
    make_release(replace_columns(context, "x", "a"), make_values(1))
    (version,) = read_past(
        make_release(replace_columns(context, "xy", "b"), make_values(1))
    ).versions
    assert np.isfinite(version.Y[:, 0]).all() and np.isnan(version.Y[:, 1]).all()


@pytest.mark.slow
def test_find_same_draws_other_space_same_draw(context: ReleaseContext) -> None:
    parameters = {"components": 2, "b": 0.3, "basis": "private"}
    one = replace(context, method="pca_laplace", parameters={**parameters, "space": "original"})
    make_release(one, make_values(1))
    past = read_past(
        make_release(replace(one, file_digest="g", parameters=parameters), make_values(1))
    )
    assert np.isfinite(past.unchanged_rows).all()


@pytest.mark.extended
def test_earlier_releases_release_without_keys_counted_as_unmatched(
    context: ReleaseContext,
) -> None:
    make_release(context, make_values(1))
    make_release(replace(context, file_digest="g", record_id=None), make_values(1))
    with context.open_store().transaction() as db:
        db.execute('drop table published."table_0002"')  # as after a release without ids
    job = make_release(replace(context, file_digest="h"), make_values(1))
    assert read_past(job).unmatched_releases == 1
    with pytest.raises(NotApplicable, match="rows of 1 earlier releases cannot be matched"):
        job.make_auditor().run("release_averaging")


def compute_mean_error(job: ReleaseJob, past: EarlierReleases | None = None) -> float:
    truth, draw = job.make_auditor().truth, job.make_auditor().draws[0]
    auditor = Auditor(truth, [draw], POLICY, b"s", earlier=past or read_past(job))
    (played,) = auditor.run_trials(ReleaseAveraging())
    return float(np.abs(played.candidates["likeliest"] - truth.X).mean())


@pytest.mark.extended
def test_release_averaging_unchanged_records_gains_nothing(context: ReleaseContext) -> None:
    values = np.random.default_rng(1).uniform(2.0, 8.0, (600, 2))  # enough for a stable mean
    make_release(context, values)
    job = make_release(context, values)
    past = read_past(job)
    one_draw = float(np.abs(np.clip(past.unchanged_rows, 0, 1) - values / 10).mean())
    assert compute_mean_error(job) == pytest.approx(one_draw)
    # As if the shadow's noise were new to a subscriber: two draws, and the check above bites.
    fresh = replace(past, unchanged_rows=np.full_like(past.unchanged_rows, np.nan))
    assert compute_mean_error(job, fresh) < 0.85 * one_draw


@pytest.mark.slow
def test_release_averaging_slightly_changed_records_gains(context: ReleaseContext) -> None:
    values = make_values(1)
    for _ in range(6):
        values += 0.001
        job = make_release(context, values)
    single = float(np.abs(job.make_auditor().draws[0].Y - job.make_auditor().truth.X).mean())
    assert compute_mean_error(job) < 0.55 * single
    found = {score.name: score for score in job.make_auditor().run("release_averaging")}
    score = found["release_averaging.breach_rate"]
    assert score.low > score.baseline


def number_batches(past: EarlierReleases) -> list[int]:
    """Return the arrival batch of each record, numbered in order of appearance."""
    known: dict[int, int] = {}
    return [known.setdefault(each, len(known)) for each in past.arrival_batch.tolist()]


@pytest.mark.slow
def test_earlier_releases_arrivals_and_removals_counted(context: ReleaseContext) -> None:
    """40 records at first; then 10 more, of which 5 change; then 10 leave and 10 arrive."""
    values = make_values(1)
    make_release(context, values[:40])
    first = read_past(make_release(context, values[:50]))
    assert number_batches(first) == np.repeat(np.arange(2), [40, 10]).tolist()
    assert first.removed_count == 0
    values[45:50] += 0.5
    second = read_past(make_release(context, values[:50]))
    assert number_batches(second) == np.repeat(np.arange(3), [40, 5, 5]).tolist()
    assert second.removed_count == 5
    third = read_past(make_release(context, values[10:60], first=10))
    assert number_batches(third) == np.repeat(np.arange(4), [30, 5, 5, 10]).tolist()
    assert third.removed_count == 10
    # Records that return are new to a subscriber who has the last release only.
    back = read_past(make_release(context, values[:60]))
    assert number_batches(back) == np.repeat(np.arange(5), [10, 30, 5, 5, 10]).tolist()
    assert back.removed_count == 0
    other = read_past(
        make_release(replace(context, file_digest="g", parameters={"b": 4 * B}), values[:60])
    )
    assert number_batches(other) == [0] * 60
    assert other.removed_count == 60
