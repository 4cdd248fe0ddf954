"""What releases charge."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Limit
from tasks.judge.ledger_charge import build_scope, format_entry
from tasks.settings_check import check_settings
from tests.support.stewards import COLUMNS, NOISE, Steward, limits, numbers
from warehouse.columns import Column
from warehouse.ledger.entries import check_ledger


@pytest.fixture
def steward(tmp_path: Path) -> Steward:
    return Steward(tmp_path, numbers())


LN = 2 * (1.0 / 0.5)  # two columns of width 1 with Laplace noise of scale 1/2, before the grid


@pytest.mark.slow
def test_ledger_history_equals_recount(steward: Steward) -> None:
    """Repeats are free, a changed record is charged once, another b charges all records."""
    versions: dict[str, set[Any]] = {name: set() for name in steward.rows}

    def week(b: float = 0.5) -> dict[str, Any]:
        entry = steward.release(parameters={"b": b})
        for name, row in steward.rows.items():
            versions.setdefault(name, set()).add((row, b))
        return entry

    first = week()
    assert first["records"] == 12 and first["asked"] == pytest.approx(LN, rel=0.01)
    steward.rows["p3"] = (0.25, 0.75)
    before = steward.rows.pop("p5")
    steward.rows["new"] = (0.5, 0.5)
    assert week()["records"] == 2
    steward.rows["p5"] = before  # as it was: nothing of it is new
    assert (week()["records"], week(b=0.25)["records"]) == (0, 13)
    last = week(b=0.25)
    assert last["records"] == 0
    figure = {0.5: first["asked"], 0.25: last["total"] - 2 * first["asked"]}
    recount = {name: math.fsum(figure[b] for _, b in found) for name, found in versions.items()}
    assert steward.accounts() == pytest.approx(recount, abs=1e-9)
    assert figure[0.25] == pytest.approx(2 * LN, rel=0.01)
    assert last["total"] == pytest.approx(max(recount.values()))
    with steward.store.transaction() as db:
        check_ledger(db, [])


@pytest.mark.extended
def test_judge_over_ledger_limit_refused_without_charge(
    steward: Steward,
) -> None:
    policy = replace(steward.policy, limits=limits(product=math.exp(1.5 * LN)))
    one = steward.release(policy=policy)
    assert one["kind"] == "charged"  # although the missing attacks made it a FAIL
    assert one["findings"]["ledger.record"]["outcome"] == "PASS"
    assert "room for 0 more such releases" in one["findings"]["ledger.record"]["why"]
    steward.rows["p3"] = (0.25, 0.75)
    two = steward.release()
    assert (two["kind"], two["charges"], two["records"]) == ("refused", 0, 0)
    finding = two["findings"]["ledger.record"]
    assert finding["outcome"] == "FAIL"
    for word in ("by up to 55, ", "asks for up to 55 for 1 record ", "Limit: 403 (DPO: for the "):
        assert word in finding["why"]
    assert "1 record has no room for it; no record was charged." in finding["why"]
    assert max(steward.accounts().values()) == pytest.approx(one["asked"])
    steward.rows["p3"] = numbers()["p3"]
    assert steward.release()["kind"] == "charged"  # no record is redrawn


@pytest.mark.extended
def test_judge_unbounded_method_needs_named_waiver(steward: Steward) -> None:
    strict = replace(steward.policy, limits=limits(product=1e9))
    lax = replace(steward.policy, limits=limits(1e9, 1, waive=("random_rotation",)))
    rotated = steward.release(method="random_rotation", parameters={}, policy=lax)
    assert (rotated["kind"], rotated["asked"], rotated["draws"]) == ("charged", 0.0, 1)
    assert rotated["unbounded"] == 12
    noisy = steward.release(method="additive_noise", parameters=NOISE, policy=strict)
    assert (noisy["kind"], noisy["spent"]) == ("refused", math.inf)
    assert "random_rotation" in noisy["findings"]["ledger.record"]["why"]
    steward.rows["p3"] = (0.25, 0.75)
    again = steward.release(method="random_rotation", parameters={}, policy=lax)
    assert (again["kind"], again["draws"]) == ("refused", 2)
    assert "1 record has no room" in again["findings"]["ledger.draws"]["why"]


WORD = Column("word", "feature", "categorical", categories=("a", "b"))
MIXED = {
    "numeric": {"method": "random_rotation"},
    "categorical": {"method": "randomized_response", "gamma": {"attribute": 3}},
}


@pytest.mark.slow
def test_judge_pipeline_waiver_names_inner_method(steward: Steward) -> None:
    rows = {name: (*row, "a") for name, row in steward.rows.items()}
    open_to_all = {"amplification.record": Limit(1e9, "DPO", "for the test")}
    found = {}
    for waived in ("pipeline", "randomized_response", "random_rotation"):
        given = {**open_to_all, **limits(1e9, 1, waive=(waived,))}
        found[waived] = steward.release(
            rows=rows,
            columns=(*COLUMNS, WORD),
            method="pipeline",
            parameters=MIXED,
            policy=replace(steward.policy, limits=given),
        )
    assert [entry["kind"] for entry in found.values()] == ["refused", "refused", "charged"]
    assert (
        "Name random_rotation in 'waive'" in found["pipeline"]["findings"]["ledger.record"]["why"]
    )
    entry = format_entry(found["random_rotation"])
    assert entry is not None
    assert (entry["gamma_added"], entry["gamma_so_far"]) == 2 * ("unbounded (waived), the rest 3",)
    assert (entry["draws"], entry["waived"]) == (1, ["random_rotation"])


@pytest.mark.slow
def test_format_entry_waived_draws_shown_as_unbounded(steward: Steward) -> None:
    lax = replace(steward.policy, limits=limits(1e9, 2, waive=("random_rotation",)))

    def release(**changes: Any) -> list[Any]:
        found = format_entry(steward.release(policy=lax, **changes))
        assert found is not None
        return [found.get(name) for name in ("gamma_added", "gamma_so_far", "draws")]

    before = release()
    assert before[0] == before[1] and "unbounded" not in before[0] and before[2] is None
    rotated = release(method="random_rotation", parameters={})
    assert rotated[0] == "unbounded (waived)" and rotated[2] == 1
    assert rotated[1].startswith("unbounded (waived), the rest ")
    assert release(audience="others") == ["1", *rotated[1:]]  # the same draws


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (limits(product=0.5), "at least 1"),
        (limits(product=math.inf), "at least 1"),
        (limits(product=math.nan), "at least 1"),
        (limits(draws=0), "at least 1"),
        (limits(product=10, waive=("random_rotation",)), "no limit counts their draws"),
    ],
)
def test_check_settings_bad_ledger_limits_bad_input(
    steward: Steward, given: dict[str, Limit], word: str
) -> None:
    with pytest.raises(BadInput, match=word):
        check_settings(
            replace(steward.build_context(), policy=replace(steward.policy, limits=given))
        )


def test_build_scope_collusion_waiver_separate_audience(steward: Steward) -> None:
    context = steward.build_context()
    shared = build_scope(context)
    policy = replace(context.policy, collusion_waiver="the DPO")
    separate = build_scope(replace(context, policy=policy))
    assert (shared.query_values["audience"], separate.query_values["audience"]) == (
        None,
        "partners",
    )
