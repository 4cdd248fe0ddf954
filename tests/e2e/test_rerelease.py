"""Two releases with one record added: what their difference reveals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer
from tests.support.history import ADDED, History
from tests.support.small_release import FEATURES, Small
from warehouse.database import Store
from warehouse.home import Home

BEFORE, AFTER = "0001", "0003"
BOUNDS = Schema(tuple(Numeric(name, 0.0, 10.0) for name in FEATURES))


def manifest(history: History, version: str) -> dict[str, Any]:
    path = history.release.published / version / "manifest.json"
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def released_rows(history: History, version: str) -> Counter[tuple[Any, ...]]:
    table = pq.read_table(history.release.published / version / "data.parquet")
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def original(history: History) -> tuple[Floats, Floats]:
    """The table before, and the record that was added, scaled."""
    rows = [row for row in history.release.rows if row is not ADDED and "cell" not in row["iron"]]
    X = np.array([[float(row[name]) for name in FEATURES] for row in rows]) / 10
    return X, np.array([float(ADDED[name]) for name in FEATURES]) / 10


def regressed_error(difference: Floats, X: Floats, x: Floats) -> float:
    """Error of the best estimate along the direction in which two bases differ, as a share of
    the error of answering the mean. The attacker is given the best length for free."""
    away = x - X.mean(axis=0)
    U, S, _ = np.linalg.svd(difference, full_matrices=False)
    u = U[:, 0] if S[0] > 0 else np.zeros(len(x))
    return float(np.linalg.norm(away - u * (u @ away)) / np.linalg.norm(away))


def test_rerelease_unchanged_records_same_rows(history: History) -> None:
    before, after = released_rows(history, BEFORE), released_rows(history, AFTER)
    assert sum((before - after).values()) == 0
    assert sum((after - before).values()) == 1


def test_rerelease_public_basis_no_information_on_added_record(history: History) -> None:
    before, after = manifest(history, BEFORE), manifest(history, AFTER)
    for name in ("public", "scaling", "guarantee", "parameters"):
        assert before[name] == after[name]
    A, B = (np.array(each["public"]["loadings"]) for each in (before, after))
    X, x = original(history)
    assert regressed_error(B - A, X, x) == 1.0


@pytest.mark.slow
def test_rerelease_private_basis_not_refitted(small: Callable[..., Small]) -> None:
    release = small("twice")
    release.content["sanitizer"] |= {"basis": "private"}
    del release.content["sanitizer"]["basis_share"]
    twice = History(release)
    for number in ("0001", "0002"):
        assert release.write().run("", entry="prepared").stdout == "published\n"
        assert release.versions()[-1] == number
        release.rows.append(ADDED)
    before, after = (manifest(twice, number) for number in ("0001", "0002"))
    assert before["public"] == after["public"] and before["scaling"] == after["scaling"]
    rows = [released_rows(twice, number) for number in ("0001", "0002")]
    assert sum((rows[0] - rows[1]).values()) == 0
    assert sum((rows[1] - rows[0]).values()) == 1


@pytest.mark.slow
def test_rerelease_basis_of_records_in_first_release_weaker_promise_published(
    small: Callable[..., Small],
) -> None:
    """All records are in the first release, so that none can be set aside for a public basis."""
    release = small("aside")
    sample = release.content["sanitizer"]
    release.content["sanitizer"] = {"method": "additive_noise", "b": 1.0}
    assert release.write().run("", entry="prepared").stdout == "published\n"
    release.content["sanitizer"] = sample
    assert release.write().run("", entry="prepared").stdout == "published\n"
    folder = release.published / "0002"
    promise = json.loads((folder / "manifest.json").read_text())["guarantee"]
    said = "Earlier releases drew records that the basis was fitted on"
    assert promise["kind"] == "bounded_given_basis"
    assert any(line.startswith(said) for line in promise["assumptions"])
    card = (folder / "card.md").read_text()
    assert said in card and "This is a weaker promise" in card and "in no release" not in card
    assert "for the record that was redrawn most often: gamma unbounded" in card


def test_fit_with_and_without_record_difference_reveals_it(history: History) -> None:
    """The control: bases refitted with and without the record reveal its direction."""
    X, x = original(history)
    sanitizer = make_sanitizer("pca_laplace", {"components": 1, "b": 0.3, "basis": "private"})
    bases = []
    for table in (X, np.vstack([X, x])):
        rows = ArrayRows(BOUNDS, table * 10)
        fitted = sanitizer.fit(fit_scaling(rows, "minmax").apply(rows))
        bases.append(np.array(fitted["loadings"]))
    assert regressed_error(bases[1] - bases[0], X, x) < 0.9


def test_warehouse_published_rows_stored_with_record_keys(history: History) -> None:
    """Later audits put the versions of a record together by it."""
    before, after = released_rows(history, BEFORE), released_rows(history, AFTER)
    with Store(Home(history.release.home)).transaction("tests") as db:
        first, second = (
            set(db.execute(f'select * from published."history_{number}"').fetchall())
            for number in (BEFORE, AFTER)
        )
    assert len(first) == before.total() and len(second) == after.total()
    assert len({key for key, *_ in second}) == after.total()
    assert first < second  # the same keys with the same numbers, and one more
    numbers = {row[:-1] for row in after}  # the label stands last
    assert {tuple(row) for _, *row in second} == numbers


@pytest.mark.extended
def test_audit_edited_stored_rows_refused(history: History, tmp_path: Path) -> None:
    release = history.release.copied_to(tmp_path / "copy")
    release.rows[6] = {**release.rows[6], "iron": "5.0"}
    with Store(Home(release.home)).transaction("tests") as db:
        db.execute("update published.history_0001 set component_1 = component_1 + 1")
    result = release.write().run("attack shadows", entry="prepared")
    assert "stored rows of history-0001 are not the published ones" in result.stderr
