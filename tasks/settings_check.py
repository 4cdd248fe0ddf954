"""The checks of a release's settings that need no record."""

from __future__ import annotations

import math

from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.model.policy import AMPLIFICATION, LABEL, LEDGER_DRAWS, LEDGER_RECORD, Policy
from ppdm_core.settings.limits import check_limit
from tasks.context import ReleaseContext


def check_settings(context: ReleaseContext) -> None:
    """Check everything in the settings that needs no record; raise BadInput with all errors."""
    from ppdm_core.audit.self_test.matrix import check_provable

    errors = ErrorList()
    for check in (check_method, check_categories_limited, check_limits, check_groups, check_sinks):
        with errors.collect():
            check(context)
    with errors.collect():
        check_ledger_limits(context.policy)
    with errors.collect():
        check_provable(context.policy)
    errors.raise_all()


def check_sinks(context: ReleaseContext) -> None:
    """Check that every sink can hold the released columns."""
    from warehouse.sinks import SINKS

    for each in context.sinks:
        SINKS[each.kind].check_columns(context.columns, each.options)


def check_method(context: ReleaseContext) -> None:
    """Check the parameters of the method, and that it can release these features."""
    from ppdm_core.sanitizers import make_sanitizer

    sanitizer = make_sanitizer(context.method, context.parameters)
    errors, kinds = ErrorList(), list_kinds(context)
    for column in context.columns:
        if column.role == "feature" and column.type not in sanitizer.accepts:
            why = (
                f"Column '{column.name}' is a {column.type} feature, and method '{context.method}' "
                f"takes only {' and '.join(sorted(sanitizer.accepts))} ones."
            )
            remedy = 'Give it the role "exclude", or choose another method.'
            errors.add(BadInput(why, column=column.name, remedy=remedy))
    if not errors.found:
        with errors.collect():
            sanitizer.check_kinds(kinds.count("numeric"), kinds.count("categorical"))
    if sanitizer.set_aside and context.record_id is None:
        why = (
            f"Method '{context.method}' sets records aside for its basis, which needs a record_id, "
            "so that they stay aside in every release."
        )
        remedy = 'Declare record_id in [dataset], or use basis = "file" or "private".'
        errors.add(BadInput(why, remedy=remedy))
    errors.raise_all()


def list_kinds(context: ReleaseContext) -> list[str | None]:
    """Return the type of each feature."""
    return [column.type for column in context.columns if column.role == "feature"]


def check_categories_limited(context: ReleaseContext) -> None:
    """Check that a limit on amplification judges categorical features."""
    if "categorical" in list_kinds(context) and not any(
        name.startswith(AMPLIFICATION) for name in context.policy.limits
    ):
        raise BadInput(
            "No limit judges the categorical features well enough: attacks measure averages, "
            "and no limit is on amplification.",
            remedy='Add "amplification.attribute" or "amplification.record" to [limits].',
        )


def check_limits(context: ReleaseContext) -> None:
    """Check that each limit can be judged."""
    errors = ErrorList()
    for name, limit in context.policy.limits.items():
        with errors.collect():
            check_limit(name, limit)
            if context.label is None and needs_label(name):
                raise BadInput(
                    f"The limit on {name} needs a label column.",
                    remedy='Give a column the role "label", or remove the limit.',
                )
    errors.raise_all()


def check_groups(context: ReleaseContext) -> None:
    """Check that groups are those of categorical columns."""
    errors = ErrorList()
    categorical = {column.name for column in context.columns if column.type == "categorical"}
    for name in context.policy.groups:
        if name not in categorical:
            why = f"'{name}' in 'groups' of [audit] is not a categorical feature or the label."
            errors.add(BadInput(why, column=name, remedy="Name categorical columns only."))
    errors.raise_all()


def needs_label(limit: str) -> bool:
    """Return whether the score of a limit exists only with a label column."""
    from ppdm_core.metrics import METRICS

    first = limit.split(".")[0]
    if first == LABEL:
        return True
    metric = METRICS.get(first)
    return metric is not None and metric.goal == "release" and metric.needs_label


def check_ledger_limits(policy: Policy) -> None:
    """Check the limits on the ledger and their waivers."""
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
            f"{LEDGER_RECORD} waives methods without a bound, and no limit counts their draws.",
            remedy=f'Add "{LEDGER_DRAWS}" to [limits].',
        )
