"""The draws of each record that the ledger charges."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import make_sanitizer
from tasks.judge.ledger_charge import list_copy_draws, list_draws
from tests.support.tables import KEY, fit_sanitizer, make_table, scale_rows
from warehouse.clock import now
from warehouse.database import Run

RUN = Run("people-0001", "people", 1, "s", "f", "c", "validated", 1, None, now())
SEX, SMOKES = Categorical("sex", ("f", "m")), Categorical("smokes", ("no", "yes"))

Lines = dict[tuple[int, int, int], float]  # record and name of each draw, and its ln gamma


def list_names(
    rows: ArrayRows, method: str, parameters: dict[str, Any], run: Run | None = None
) -> tuple[Lines, Any]:
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit_sanitizer(sanitizer, rows)
    X, noise = scale_rows(rows, fitted), Noise(KEY)
    candidate = sanitizer.sanitize(X, noise, fitted)
    found = list_draws(X, candidate, sanitizer, noise, fitted, run and run.release_id).read_all()
    columns = [found.column(name).to_pylist() for name in ("record", "draw_high", "draw_low")]
    names = list(zip(*columns, strict=True))
    assert len(set(names)) == len(names)
    return dict(zip(names, found.column("ln_gamma").to_pylist(), strict=True)), candidate


def people(codes: np.ndarray, schema: Schema) -> ArrayRows:
    whole = make_table(len(codes)).whole
    return ArrayRows(schema, whole.X[:, :0], whole.label, whole.key, codes)


def test_list_draws_changed_category_one_new_draw() -> None:
    schema = Schema((), (SEX, SMOKES))
    codes = np.arange(24, dtype=np.int32).reshape(12, 2) // 3 % 2
    gamma = {"gamma": {"attribute": {"sex": 2, "smokes": 5}}}
    before, _ = list_names(people(codes, schema), "randomized_response", gamma)
    assert sorted(before.values()) == pytest.approx([math.log(2)] * 12 + [math.log(5)] * 12)
    codes[4, 0] = 1 - codes[4, 0]
    after, _ = list_names(people(codes, schema), "randomized_response", gamma)
    assert [after[name] for name in after.keys() - before.keys()] == pytest.approx([math.log(2)])
    # The same answers with the categories in another order are the same answers.
    turned = replace(schema, categorical=(replace(SEX, categories=("m", "f")), SMOKES))
    same = np.stack([1 - codes[:, 0], codes[:, 1]], axis=1)
    assert list_names(people(same, turned), "randomized_response", gamma)[0] == after
    other = {"gamma": {"attribute": {"sex": 2, "smokes": 6}}}
    changed, _ = list_names(people(codes, schema), "randomized_response", other)
    fresh = [changed[name] for name in changed.keys() - after.keys()]
    assert fresh == pytest.approx([math.log(6)] * 12)


def test_list_draws_several_rows_of_a_record_all_listed() -> None:
    rows = make_table(40)
    once, few = list_names(rows, "kde_resample", {})
    more, many = list_names(rows, "kde_resample", {"rows": 200})
    for lines, candidate in ((once, few), (more, many)):
        copies = Counter(np.concatenate([b.record for b in candidate.rows.blocks()]).tolist())
        # Each record counts, list_draws or not.
        expected = sorted(max(1, copies[place]) for place in range(40))
        assert sorted(Counter(record for record, _, _ in lines).values()) == expected
        assert set(lines.values()) == {math.inf}
    assert once.keys() < more.keys()  # the first draws are list_draws again, and are free


def test_list_copy_draws_rows_of_a_record_in_two_blocks_listed() -> None:
    whole = make_table(5).whole
    blocks = [
        replace(whole, record=np.array([3, 3, 7, 7, 7]), start=0),
        replace(whole, record=np.array([7, 8, 8, 9, 9]), start=5),
    ]
    released = SimpleNamespace(rows=SimpleNamespace(blocks=lambda: iter(blocks)))
    places, accounts = np.array([3, 7, 8, 9]), np.array([30, 70, 80, 90], dtype=np.uint64)
    lines = list_copy_draws(released, Noise(KEY), places, accounts)  # type: ignore[arg-type]
    charged = np.concatenate([account for account, *_ in lines])
    assert charged.tolist() == [30, 70, 70, 70, 80, 90]


def test_list_draws_without_ids_every_run_is_new() -> None:
    rows, noisy = make_table(40), ("additive_noise", {"b": 0.3})
    by_record, _ = list_names(rows, *noisy)
    first, _ = list_names(rows, *noisy, RUN)
    second, _ = list_names(rows, *noisy, replace(RUN, release_id="people-0002"))
    assert list(first.values()) == list(second.values()) == list(by_record.values())[:1]
    assert {record for record, _, _ in first} == {0} and not first.keys() & second.keys()
    drawn_often, candidate = list_names(rows, "kde_resample", {"rows": 200}, RUN)
    records = np.concatenate([block.record for block in candidate.rows.blocks()])
    assert len(drawn_often) == np.bincount(records).max()


def test_list_draws_other_key_other_names() -> None:
    rows, sanitizer = make_table(5), make_sanitizer("additive_noise", {"b": 0.3})
    fitted = fit_sanitizer(sanitizer, rows)
    X = scale_rows(rows, fitted)
    names = []
    for key in (KEY, bytes(32)):
        candidate = sanitizer.sanitize(X, Noise(key), fitted)
        lines = list_draws(X, candidate, sanitizer, Noise(key), fitted, None).read_all()
        names += [lines.column(name).to_pylist() for name in ("record", "draw_high")]
    assert not set(names[0]) & set(names[2]) and not set(names[1]) & set(names[3])
