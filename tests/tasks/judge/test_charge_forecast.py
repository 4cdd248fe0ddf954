"""What `ppdm check` foretells of the ledger is what the release then charges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks.home_state import read_home_state
from tasks.ingest.source_check import open_checked_source
from tasks.judge.charge_forecast import ChargeForecast, forecast_charge
from tasks.sanitize.next_release import prepare_release
from tests.support.stewards import Policy, Steward, limits, numbers


@pytest.fixture
def steward(tmp_path: Path) -> Steward:
    return Steward(tmp_path, numbers(40))


def foretell(steward: Steward) -> ChargeForecast:
    context = steward.build_context()
    state = read_home_state(context)
    with open_checked_source(context, state.columns) as source:
        release = prepare_release(source, context, state)
        return forecast_charge(context, release, state)


def release_as_foretold(steward: Steward) -> ChargeForecast:
    """Foretell a release, make it, and compare the entry of the ledger."""
    foretold, entry = foretell(steward), steward.release()
    balance = foretold.balance
    charged = balance.records if foretold.is_charged else 0
    assert entry["records"] == charged
    assert entry["kind"] == ("refused" if foretold.is_refused else "charged")
    expected = (balance.spent, balance.asked, balance.after, balance.draws_after)
    assert (entry["spent"], entry["asked"], entry["total"], entry["draws"]) == expected
    found = entry["findings"]["ledger.record"]
    assert found["why"] == foretold.findings[0].why
    return foretold


@pytest.mark.extended
def test_forecast_charge_with_ids_same_draw_charged_once(steward: Steward) -> None:
    first, second = release_as_foretold(steward), release_as_foretold(steward)
    assert first.is_charged and first.balance.records == 40
    assert not second.is_charged and not second.is_refused
    assert sum(steward.accounts().values()) == pytest.approx(40 * first.balance.asked)


@pytest.mark.slow
def test_forecast_charge_some_records_changed_only_they_are_charged(steward: Steward) -> None:
    release_as_foretold(steward)
    steward.rows |= {"p3": (0.5, 0.5), "new": (0.25, 0.75)}
    assert release_as_foretold(steward).balance.records == 2


@pytest.mark.extended
def test_forecast_charge_without_ids_every_run_charged(steward: Steward) -> None:
    steward.record_id = None
    first, second = release_as_foretold(steward), release_as_foretold(steward)
    assert first.is_charged and second.is_charged
    assert second.balance.spent == first.balance.asked > 0
    assert not second.balance.has_ids


@pytest.mark.slow
def test_forecast_charge_limit_reached_refused_and_not_charged(steward: Steward) -> None:
    asked = foretell(steward).balance.asked
    line = 2.718281828 ** (1.5 * asked)
    steward.policy = Policy((), limits(product=line), shadow_draws=1, splits=0)
    release_as_foretold(steward)
    steward.rows = {name: (x / 2, y) for name, (x, y) in steward.rows.items()}
    refused = release_as_foretold(steward)
    assert refused.is_refused and not refused.is_charged
    assert "raise 'b' (now 0.5)" in refused.findings[0].remedy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("pca_laplace", {"components": 1, "b": 0.5, "basis_share": 0.3}),
        ("kde_resample", {}),
        ("random_rotation", {}),
    ],
)
def test_forecast_charge_other_methods_as_charged(
    steward: Steward, method: str, parameters: dict[str, Any]
) -> None:
    """The key, by which records are set aside or drawn twice, exists after the first release."""
    steward.release(method=method, parameters=parameters)
    steward.rows = {name: (x / 2, y) for name, (x, y) in steward.rows.items()}
    assert release_as_foretold(steward).is_charged
    assert not release_as_foretold(steward).is_charged


def test_read_home_state_no_home_nothing_made(steward: Steward) -> None:
    context = steward.build_context()
    Path(context.home, "private", "warehouse.duckdb").unlink()
    before = sorted(Path(context.home).rglob("*"))
    assert read_home_state(context).is_new
    assert foretell(steward).is_charged
    assert list(Path(context.home).rglob("*.key")) == []
    assert set(before) <= set(Path(context.home).rglob("*"))
