"""Everything that `ppdm check` says of a release before it is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ppdm.forecast.cost import ReleaseCost, describe_shape, estimate_release
from ppdm_core.model.errors import BadInput
from tasks.audit.policy_forecast import PolicyForecast, forecast_policy_check
from tasks.context import ReleaseContext
from tasks.home_state import read_home_state
from tasks.ingest.source_check import open_checked_source
from tasks.judge.charge_forecast import ChargeForecast, forecast_charge
from tasks.publish.sinks import check_servers
from tasks.release_space import check_space
from tasks.sanitize.next_release import prepare_release
from warehouse.home import Home
from warehouse.sources import SOURCES
from warehouse.tunes import Records, count_tried_settings


@dataclass(frozen=True)
class Forecast:
    """What a release will find, do and cost; it holds counts and names, no cell."""

    facts: dict[str, Any]  # of the source
    charge: ChargeForecast
    policy: PolicyForecast
    cost: ReleaseCost


def foretell_release(context: ReleaseContext) -> Forecast:
    """Check the source and foretell its release; nothing is stored."""
    check_servers(context)
    context = replace(context, policy=context.policy.judge_choice(count_earlier_settings(context)))
    state = read_home_state(context)
    try:
        with open_checked_source(context, state.columns) as source:
            release = prepare_release(source, context, state)
            shape = describe_shape(release, len(context.columns))
            home = context.open_store().home.root
            check_space(shape, context.policy, home, is_new_home=state.is_new)
            charge = forecast_charge(context, release, state)
            policy = forecast_policy_check(context, release, state)
            cost = estimate_release(
                release, context.policy, state, policy.seconds, len(context.columns)
            )
    except BadInput as error:  # of records that the method cannot release
        raise error.in_file(context.source.name, only_unnamed=True) from None
    return Forecast(source.facts, charge, policy, cost)


def count_earlier_settings(context: ReleaseContext) -> int:
    """Return how many settings tunes tried on the dataset, or on the same source; 0 without a home.

    The same records from another source are recognised by the release itself.
    """
    if not Home(Path(context.home)).database.exists():
        return 0
    source = SOURCES[context.source.kind].digest(context.source)
    with context.open_store().transaction(f"{context.dataset} check") as db:
        return count_tried_settings(db, context.dataset, Records("", source))
