"""One release, end to end: the five flows in five lines."""

from __future__ import annotations

from prefect import State, flow
from prefect.states import Completed, StateType

from flows.audit import audit
from flows.config import ReleaseFile
from flows.gate import gate
from flows.ingest import ingest
from flows.plan import plan_of
from flows.publish import publish
from flows.sanitize import sanitize
from tasks.publish import tell
from tasks.turns import taking_turns


@flow(name="release", flow_run_name="{file.dataset.name}", retries=0)
def release(file: ReleaseFile, dry_run: bool = False) -> State[str]:
    """Ingest, perturb, attack, judge; publish only what was approved."""
    plan = plan_of(file)
    with taking_turns(plan):
        release_id = ingest(file)
        sanitize(file, release_id)
        audit(file, release_id)
        gate(file, release_id)
        outcome = publish(file, release_id, dry_run)
        tell(plan, release_id)
    return ended(release_id, outcome)


def ended(release_id: str, outcome: str) -> State[str]:
    if outcome == "refused":
        message = f"{release_id} was refused by the gate; nothing was published."
        return State(type=StateType.FAILED, name="Refused", message=message)
    return Completed(name=outcome.capitalize(), message=f"{release_id}: {outcome}.")
