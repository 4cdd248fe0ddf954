"""One release as the tasks need it: the release file in the words of the layers below."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.policy import LEDGER_DRAWS, LEDGER_RECORD, Limit, Policy
from tasks.progress import log_progress
from warehouse.columns import Column, Source
from warehouse.database import Run, Store
from warehouse.home import Home
from warehouse.runs import must_find

PACKAGES = ("flows", "ppdm", "ppdm_core", "tasks", "warehouse")


@dataclass(frozen=True)
class Plan:
    folder: str  # of the release file: relative paths start here
    file_digest: str
    home: str
    dataset: str
    owner: str
    audience: str
    source: Source
    columns: tuple[Column, ...]
    method: str
    parameters: dict[str, Any]
    policy: Policy
    sink: str = "parquet"
    record_id: str | None = None
    keep_raw: int = 1
    file: str = "{}"  # the release file itself, as JSON: what waits is published by it

    def store(self) -> Store:
        return Store(Home(Path(self.home)), say=log_progress)

    def run(self, release_id: str) -> tuple[Store, Run]:
        """The run, if it is one of this very file: no step may take another one's settings."""
        store = self.store()
        with store.transaction(release_id) as db:
            run = must_find(db, release_id)
        if (run.dataset, run.file_digest) != (self.dataset, self.file_digest):
            raise Refused(
                f"{release_id} was begun by another release file.",
                remedy="Run the release again with the file as it is now.",
            )
        return store, run

    @property
    def label(self) -> Column | None:
        return next((column for column in self.columns if column.role == "label"), None)


def check_plan(plan: Plan) -> None:
    """What can be known to be wrong before any record is read."""
    from ppdm_core.sanitizers import make_sanitizer

    sanitizer = make_sanitizer(plan.method, plan.parameters)
    for column in plan.columns:
        if column.role == "feature" and column.type not in sanitizer.accepts:
            raise BadInput(
                f"Column '{column.name}' is a {column.type} feature, and method '{plan.method}' "
                f"takes only {' and '.join(sorted(sanitizer.accepts))} ones.",
                column=column.name,
                remedy='Give it the role "exclude", or choose another method.',
            )
    kinds = [column.type for column in plan.columns if column.role == "feature"]
    sanitizer.check_kinds(kinds.count("numeric"), kinds.count("categorical"))
    if "categorical" in kinds and not any(
        name.startswith("amplification.") for name in plan.policy.limits
    ):
        raise BadInput(
            "Nothing would judge the categorical features well enough: attacks measure averages, "
            "and no limit is on amplification.",
            remedy='Add "amplification.attribute" or "amplification.record" to [limits].',
        )
    if sanitizer.set_aside and plan.record_id is None:
        raise BadInput(
            f"Method '{plan.method}' sets records aside for its basis, which needs a record_id, "
            "so that they stay aside in every release.",
            remedy='Declare record_id in [dataset], or use basis = "file" or "private".',
        )
    for name, limit in plan.policy.limits.items():
        check_limit(name, limit)
        if plan.label is None and needs_label(name):
            raise BadInput(
                f"The limit on {name} needs a label column.",
                remedy='Give a column the role "label", or remove the limit.',
            )
    check_ledger(plan.policy)
    categorical = {column.name for column in plan.columns if column.type == "categorical"}
    for name in plan.policy.groups:
        if name not in categorical:
            raise BadInput(
                f"'{name}' in 'groups' of [audit] is not a categorical feature or the label.",
                column=name,
                remedy="Name categorical columns only.",
            )


def needs_label(limit: str) -> bool:
    from ppdm_core.metrics import METRICS

    metric = METRICS.get(limit.split(".")[0])
    return metric is not None and metric.goal == "release" and metric.needs_label


def check_limit(name: str, limit: Limit) -> None:
    """Whether there can be a score that it judges."""
    from ppdm_core.attacks import ATTACKS
    from ppdm_core.metrics import CLASSIFIERS, METRICS

    attack, metric = name.split(".")[0], METRICS.get(name.split(".")[-1])
    changes = [f"{each}.deterioration" for each in CLASSIFIERS]
    is_of_release = "." in name and attack in METRICS
    if name not in changes and (is_of_release or (metric and metric.goal == "change")):
        raise BadInput(
            f"The limit on {name} can never be judged: there is no such score.",
            remedy=f"Use {attack if is_of_release else ' or '.join(changes)}.",
        )
    if metric and attack in ATTACKS and ATTACKS[attack].goal != metric.goal:
        measured = [each.name for each in METRICS.values() if each.goal == ATTACKS[attack].goal]
        raise BadInput(
            f"The limit on {name} can never be judged: no such score of {attack} exists.",
            remedy=f"Use {' or '.join(f'{attack}.{each}' for each in measured)}.",
        )
    if metric is not None and not metric.gateable:
        raise BadInput(
            f"The limit on {name} cannot be judged: {metric.name} is for screening only.",
            remedy="Remove the limit; the figure is logged all the same.",
        )
    is_loss = metric is not None and (metric.kind, metric.better) == ("utility", "down")
    if is_loss and not limit.absolute:
        raise BadInput(
            f"The limit on {name} has no baseline that it could exceed.",
            remedy="Add absolute = true to it.",
        )
    check_band(name, limit)


def check_band(name: str, limit: Limit) -> None:
    """What people decide lies on the safe side of the limit."""
    from ppdm_core.gates.score_limits import line_of
    from ppdm_core.metrics import METRICS

    metric = METRICS.get(name.split(".")[-1])
    if limit.review is None:
        return
    lines = (limit.review, limit.value)
    careful, line = lines if metric is None else (line_of(metric, limit, each) for each in lines)
    if not careful < line:
        side = "below" if line == limit.value else "above"
        raise BadInput(
            f"The limit on {name} leaves nothing to people: its 'review' is not {side} its value.",
            remedy=f"Set 'review' {side} 'value', or remove it.",
        )


def check_ledger(policy: Policy) -> None:
    """What can be known to be wrong before any record is read."""
    for key in (LEDGER_RECORD, LEDGER_DRAWS):
        limit = policy.limits.get(key)
        if limit is not None and not 1 <= limit.value < math.inf:
            unit = "a gamma" if key == LEDGER_RECORD else "a count of draws"
            raise BadInput(
                f"The limit on {key} must be {unit} of at least 1. Got {limit.value:g}.",
                remedy="Correct its value.",
            )
    product = policy.limits.get(LEDGER_RECORD)
    if product is not None and product.waive and LEDGER_DRAWS not in policy.limits:
        raise BadInput(
            f"{LEDGER_RECORD} waives methods without a bound, and nothing counts their draws.",
            remedy=f'Add "{LEDGER_DRAWS}" to [limits].',
        )


def code_version() -> str:
    """Digest of our own source, as it is now: a verdict holds only for the code that reached it."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.suffix in (".py", ".sql"):
                digest.update(str(path.relative_to(root)).encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
