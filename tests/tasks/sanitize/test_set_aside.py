"""Records that are set aside for a basis, and the releases that contain them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.policy import Limit
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.noise import Noise
from tasks.audit.attack_inputs import read_inputs
from tasks.sanitize.records import choose_set_aside
from tests.support.contexts import open_run
from tests.support.stewards import COLUMNS, NOISE, Steward, limits, numbers
from tests.support.tables import KEY, make_table
from warehouse.clock import now
from warehouse.columns import Column
from warehouse.integrity.events import append_event
from warehouse.ledger.drawn_records import DrawnRecords
from warehouse.ledger.entries import check_ledger
from warehouse.stage_facts import SanitizedFacts, read_facts

SAMPLE = {"components": 1, "b": 0.5, "basis": "sample", "basis_share": 0.3}
PCA = {"method": "pca_laplace", "parameters": SAMPLE}
ADDITIVE = {"method": "additive_noise", "parameters": NOISE}
DRAWN_BEFORE = "Earlier releases drew records that the basis was fitted on"


@pytest.fixture
def steward(tmp_path: Path) -> Steward:
    return Steward(tmp_path, numbers(60))


def add_records(steward: Steward, count: int) -> None:
    values = np.random.default_rng(7).random((count, 2)).round(6).tolist()
    steward.rows |= {f"new{i}": tuple(row) for i, row in enumerate(values)}


def read_release(steward: Steward, entry: dict[str, Any]) -> tuple[SanitizedFacts, set[str]]:
    """Return the facts of a release, and the ids of the records in it."""
    ids = list(steward.rows)
    with steward.store.transaction() as db:
        facts = read_facts(db, entry["release_id"], SanitizedFacts)
        table = entry["release_id"].replace("-", "_")
        rows = db.execute(f'select __ppdm_row from sanitized."{table}_candidate"').fetchall()
    return facts, {ids[place] for (place,) in rows}


def publish(steward: Steward, entry: dict[str, Any]) -> None:
    """Record a release as published; it was refused, because no attack ran."""
    release_id = entry["release_id"]
    with steward.store.transaction() as db:
        values = ["people", int(release_id[-4:]), release_id, "d", "m", now()]
        db.execute("insert into published.version values (?, ?, ?, ?, ?, ?)", values)
        db.execute("update meta.run set stage = 'published' where release_id = ?", [release_id])
        append_event(db, "people", release_id, "published", {"data": "d", "manifest": "m"})


def is_weaker(facts: SanitizedFacts) -> bool:
    """Return whether kind and assumptions state the weaker promise; both or none must."""
    is_stated = any(DRAWN_BEFORE in line for line in facts.guarantee.assumptions)
    assert is_stated == (facts.guarantee.kind == "bounded_given_basis")
    return is_stated


@pytest.mark.extended
def test_split_records_first_release_strong_promise_no_charge_of_set_aside(
    steward: Steward,
) -> None:
    entry = steward.release(**PCA)
    facts, released = read_release(steward, entry)
    assert not is_weaker(facts)
    assert 2 <= facts.set_aside == 60 - len(released)
    assert (entry["records"], entry["unbounded"]) == (len(released), 0)


@pytest.mark.slow
def test_split_records_all_drawn_before_weaker_promise_and_charge(steward: Steward) -> None:
    noisy = steward.release(**ADDITIVE)
    assert noisy["kind"] == "charged"  # although the missing attacks made it a FAIL
    entry = steward.release(**PCA)
    facts, released = read_release(steward, entry)
    set_aside = set(steward.rows) - released
    assert is_weaker(facts)
    assert entry["unbounded"] == len(set_aside) == facts.set_aside == facts.drawn_set_aside
    spent = steward.accounts()
    assert {name for name, figure in spent.items() if figure == math.inf} == set_aside
    with steward.store.transaction() as db:
        check_ledger(db, [])
    publish(steward, entry)
    steward.rows[min(released)] = (0.25, 0.75)
    again = steward.release()  # the same basis reveals no more of them
    assert (again["records"], again["unbounded"]) == (1, 0)
    assert is_weaker(read_release(steward, again)[0])
    assert read_release(steward, again)[1] == released


@pytest.mark.slow
def test_judge_drawn_set_aside_limit_needs_waiver_of_method(steward: Steward) -> None:
    steward.release(**ADDITIVE)
    strict = replace(steward.policy, limits=limits(product=1e9))
    refused = steward.release(**PCA, policy=strict)
    assert (refused["kind"], refused["asked"]) == ("refused", math.inf)
    why = refused["findings"]["ledger.record"]["why"]
    assert "Name pca_laplace in 'waive'" in why
    lax = replace(steward.policy, limits=limits(1e9, 1, waive=("pca_laplace",)))
    entry = steward.release(policy=lax)
    assert (entry["kind"], entry["draws"]) == ("charged", 1)


@pytest.mark.extended
def test_judge_pipeline_drawn_set_aside_waiver_names_inner_method(steward: Steward) -> None:
    word = Column("word", "feature", "categorical", categories=("a", "b"))
    steward.rows = {name: (*row, "a") for name, row in steward.rows.items()}
    steward.columns = (*COLUMNS, word)
    noise = {"method": "additive_noise", **NOISE}
    answers = {"method": "randomized_response", "gamma": {"attribute": 3}}
    bound = {"amplification.record": Limit(1e9, "DPO", "for the test")}
    steward.policy = replace(
        steward.policy, limits={**bound, **limits(1e9, 1, waive=("pca_laplace",))}
    )
    steward.method = "pipeline"
    steward.release(parameters={"numeric": noise, "categorical": answers})
    pca = {"method": "pca_laplace", **SAMPLE}
    entry = steward.release(parameters={"numeric": pca, "categorical": answers})
    assert is_weaker(read_release(steward, entry)[0])
    assert (entry["kind"], entry["draws"], entry["method"]) == ("charged", 1, "pca_laplace")


@pytest.mark.slow
def test_split_records_new_records_taken_in_place_of_drawn_ones(steward: Steward) -> None:
    old = set(steward.rows)
    steward.release(**ADDITIVE)
    add_records(steward, 120)
    entry = steward.release(**PCA)
    facts, released = read_release(steward, entry)
    assert not is_weaker(facts) and entry["unbounded"] == 0
    assert old <= released and 2 <= facts.set_aside < 120
    set_aside = set(steward.rows) - released
    # The basis is kept, and so are its records; further new ones are released.
    publish(steward, entry)
    steward.rows |= {f"late{i}": (0.1 * i, 0.5) for i in range(10)}
    later, released = read_release(steward, steward.release())
    assert later.fitted == facts.fitted and not is_weaker(later)
    assert set(steward.rows) - released == set_aside


@pytest.mark.slow
def test_split_records_few_new_records_filled_up_with_drawn_ones(steward: Steward) -> None:
    steward.release(**ADDITIVE)
    add_records(steward, 2)  # no more than the columns
    entry = steward.release(**PCA)
    facts, released = read_release(steward, entry)
    assert is_weaker(facts)
    assert not released & {"new0", "new1"}  # they are taken first, and are charged nothing
    assert entry["unbounded"] == facts.drawn_set_aside == facts.set_aside - 2


@pytest.mark.slow
def test_split_records_larger_share_uses_records_in_no_release(steward: Steward) -> None:
    add_records(steward, 60)
    first = steward.release(**PCA)
    publish(steward, first)
    before = read_release(steward, first)[1]
    wider = {**SAMPLE, "basis_share": 0.6, "refit_waiver": "the DPO"}
    facts, after = read_release(steward, steward.release(parameters=wider))
    assert after == before and not is_weaker(facts)


@pytest.mark.slow
def test_split_records_unpublished_fit_drawn_since_weaker_promise(steward: Steward) -> None:
    """A refused release sets nothing aside for good; its basis must not be used silently."""
    first = steward.release(**PCA)
    strong, _ = read_release(steward, first)
    assert len(read_release(steward, steward.release(**ADDITIVE))[1]) == 60
    entry = steward.release(**PCA)
    facts, _ = read_release(steward, entry)
    assert not is_weaker(strong) and is_weaker(facts)
    assert entry["unbounded"] == facts.set_aside > 0
    add_records(steward, 120)  # now there are records to learn from
    free, released = read_release(steward, steward.release())
    assert not is_weaker(free) and set(numbers(60)) <= released
    assert free.fitted != strong.fitted


@pytest.mark.extended
def test_split_records_release_without_ids_before_weaker_promise(steward: Steward) -> None:
    steward.release(**ADDITIVE, record_id=None)
    facts, _ = read_release(steward, steward.release(**PCA, record_id="id"))
    assert is_weaker(facts)


@pytest.mark.extended
def test_split_records_without_id_after_set_aside_bad_input(steward: Steward) -> None:
    publish(steward, steward.release(**PCA))
    with pytest.raises(BadInput, match="without a record_id they cannot be recognised"):
        steward.release(**ADDITIVE, record_id=None)


@pytest.mark.slow
def test_split_records_equal_fit_of_other_settings_kept(steward: Steward) -> None:
    """Both settings keep one component of two, and learn the same from the same records."""
    publish(steward, steward.release(**PCA))
    other = {**SAMPLE, "components": 0.5, "refit_waiver": "the DPO"}
    second = steward.release(parameters=other)
    publish(steward, second)
    facts, released = read_release(steward, second)
    for name in set(steward.rows) - released:
        steward.rows[name] = (0.9, 0.9)
    assert read_release(steward, steward.release())[0].fitted == facts.fitted


@pytest.mark.slow
def test_audit_inputs_records_are_those_released(steward: Steward) -> None:
    for changes in (PCA, ADDITIVE, PCA):
        entry = steward.release(**changes)
        context = steward.build_context()
        store, run = open_run(context, entry["release_id"])
        with store.transaction() as db:
            work = store.home.work(run.release_id)
            inputs = read_inputs(db, context, run, work)
            places = np.concatenate([block.record for block in inputs.records.blocks()])
        ids = list(steward.rows)
        assert {ids[place] for place in places} == read_release(steward, entry)[1]
        store.home.clear_work(run.release_id)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("update meta.fitted set set_aside = set_aside[9:]", "from its records was changed"),
        ("delete from meta.fitted", "learned from its records was deleted"),
    ],
)
def test_split_records_edited_set_aside_refused(steward: Steward, statement: str, why: str) -> None:
    """Else the records of the basis could be released later."""
    publish(steward, steward.release(**PCA))
    with steward.store.transaction() as db:
        db.execute(statement)
    with pytest.raises(Refused, match=why):
        steward.release(**ADDITIVE)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 60),
    share=st.floats(0.05, 0.95),
    drawn_share=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_choose_set_aside_records_in_no_release_first(
    n: int, share: float, drawn_share: float, seed: int
) -> None:
    rows, noise, rng = make_table(n, 3, seed % 1000), Noise(KEY), np.random.default_rng(seed)
    key = rows.whole.key
    names, ranks = noise.ranks(key, "ledger"), noise.ranks(key, "set aside") / 2.0**64
    plain = np.sort(names[ranks < share])
    nothing = DrawnRecords(np.zeros(0, dtype=np.uint64))
    assert np.array_equal(choose_set_aside(rows, noise, share, nothing), plain)
    is_drawn = rng.random(n) < drawn_share
    drawn, free = DrawnRecords(np.sort(names[is_drawn])), set(names[~is_drawn].tolist())
    found = choose_set_aside(rows, noise, share, drawn)
    chosen = set(found.tolist())
    if chosen <= free:
        assert len(chosen) == min(len(plain), len(free))
    else:  # too few of them for three columns: all of them are taken, and others
        assert len(free) <= 3 and free <= chosen and len(chosen) == len(plain)
    order = rng.permutation(n)
    whole = rows.whole
    turned = ArrayRows(rows.schema, whole.X[order], whole.label[order], key[order])
    assert np.array_equal(choose_set_aside(turned, noise, share, drawn), found)
