"""What all parties of a common release must agree on, and which releases can be common ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ppdm_core.attacks.membership import Membership
from ppdm_core.attacks.other_party import OtherParty
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.attacks.related_party import RelatedParty
from ppdm_core.metrics.breach_rate import BreachRate
from ppdm_core.metrics.inference_rate import InferenceRate
from ppdm_core.metrics.rate import Rate
from ppdm_core.metrics.true_positive_rate import TruePositiveRate
from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers import SANITIZERS, Sanitizer
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tasks.context import ReleaseContext
from warehouse.columns import Column
from warehouse.messages.roll import COLUMNS, PARTITION

# Each site decides about these itself, or holds other columns than the others.
OWN_PARAMETERS = frozenset({"refit_waiver", "others"})
MIN_SITES = 2
MIN_MOMENT_SITES = 3  # with two sites, each knows the other's part of a sum


# The rounds in which parties agree on a fit, by how a method fits in common.
ROUNDS: dict[str, tuple[str, ...]] = {
    "own": (),  # every site fits the method on its own records
    "bounds": ("bounds",),
    "moments": ("moments", "scores"),
}
# What parties with other columns must limit, and the centre, with what the limit judges.
PARTY_LIMITS = {
    f"{OtherParty.name}.{BreachRate.name}": "what other parties learn of this party's columns",
    f"{RelatedParty.name}.{InferenceRate.name}": "what parties with related columns learn of "
    "this party's columns",
}
CENTRE_LIMITS = {
    f"{RecordLinkage.name}.{Rate.name}": "how many persons complete records find in the sums",
    f"{Membership.name}.{TruePositiveRate.name}": "whom complete records show to be in the sums",
}


def describe_terms(context: ReleaseContext) -> dict[str, Any]:
    """Return columns, method and parameters, as every party must have them."""
    released = (column for column in context.columns if column.role in ("feature", "label"))
    sanitizer = context.make_sanitizer()
    partition = {} if find_column_method(sanitizer) is None else {PARTITION: COLUMNS}
    return {
        **partition,
        "method": context.method,
        "parameters": select_common_parameters(context.parameters),
        "columns": [describe_column(column) for column in released],
    }


def select_common_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that all parties must have alike."""
    return {name: value for name, value in parameters.items() if name not in OWN_PARAMETERS}


def find_column_method(sanitizer: Sanitizer) -> DctFuzzy | None:
    """Return the method of parties that hold other columns of the same persons, else None."""
    is_part = isinstance(sanitizer, DctFuzzy) and sanitizer.others is not None
    return cast(DctFuzzy, sanitizer) if is_part else None


def list_rounds(context: ReleaseContext) -> tuple[str, ...]:
    """Return the rounds in which the parties agree on a fit."""
    common_fit = context.make_sanitizer().common_fit
    assert common_fit is not None  # check_common_release
    return ROUNDS[common_fit]


def has_other_columns(context: ReleaseContext) -> bool:
    """Return whether the parties hold different columns of the same persons."""
    return find_column_method(context.make_sanitizer()) is not None


def check_own_columns(context: ReleaseContext, method: DctFuzzy) -> None:
    """Raise BadInput unless every column of 'order' is either here or with another party."""
    own = [column.name for column in context.columns if column.role == "feature"]
    order, others = method.order or (), method.others or ()
    remedy = "Name all columns of all parties in 'order', and those of the others in 'others'."
    for name in own:
        if name in others:
            why = f"'others' gives the column '{name}' to another party, and this one declares it."
            raise BadInput(why, column=name, remedy=remedy)
        if name not in order:
            raise BadInput(f"Column '{name}' is not in 'order'.", column=name, remedy=remedy)
    for name in order:
        if name not in own and name not in others:
            why = f"'order' names the column '{name}', which is neither declared nor in 'others'."
            raise BadInput(why, column=name, remedy=remedy)


def check_intersection(context: ReleaseContext, sites: int) -> None:
    """Raise BadInput unless two parties with other columns take part."""
    if not has_other_columns(context):
        raise BadInput(
            "--intersection is for parties that hold other columns of the same persons.",
            remedy="Leave it out, or name the columns of the other party in 'others' of "
            "[sanitizer].",
        )
    if sites != 2:
        raise BadInput(
            f"An intersection is found by two parties; {sites} take part.",
            remedy="Agree on the persons, and join without --intersection.",
        )


def check_limits(context: ReleaseContext, *, is_centre: bool) -> None:
    """Raise BadInput if a limit is missing that parties with other columns or the centre need."""
    needed = CENTRE_LIMITS if is_centre else PARTY_LIMITS
    missing = [name for name in needed if name not in context.policy.limits]
    if has_other_columns(context) and missing:
        raise BadInput(
            f"No limit '{missing[0]}' judges {needed[missing[0]]}.",
            remedy=f'Set "{missing[0]}" in [limits], and require {missing[0].split(".")[0]} in '
            "[audit].",
        )


def describe_column(column: Column) -> dict[str, Any]:
    """Return what all parties must agree on of a column."""
    found: dict[str, Any] = {"name": column.name, "role": column.role, "type": column.type}
    if column.type == "numeric":
        return {**found, "low": column.low, "high": column.high}
    return {**found, "categories": list(column.categories)}


def list_common_methods() -> list[str]:
    """Return the methods with which sites can release together."""
    return [name for name, kind in SANITIZERS.items() if kind.common_fit is not None]


def check_common_release(
    context: ReleaseContext, sites: int, *, is_centre: bool = False
) -> Sanitizer:
    """Return the method; raise BadInput if so many sites cannot release with it together."""
    sanitizer = context.make_sanitizer()
    if sanitizer.common_fit is None:
        raise BadInput(
            f"Sites cannot release together with method '{context.method}'.",
            remedy=f"Use one of these methods: {', '.join(list_common_methods())}.",
        )
    if sanitizer.scale == "zscore":
        raise BadInput(
            "A common release cannot scale by z-scores: every site would have its own.",
            remedy='Set scale = "minmax" in [sanitizer].',
        )
    for column in context.columns:
        if column.role == "feature" and column.is_from_data:
            raise BadInput(
                f"The bounds of column '{column.name}' would come from the data of each site.",
                column=column.name,
                remedy="Declare 'low' and 'high', the same at all sites.",
            )
    method = find_column_method(sanitizer)
    if method is not None:
        check_own_columns(context, method)
    if method is not None and context.record_id is None:
        raise BadInput(
            "Parties with other columns of the same persons align them by record_id.",
            remedy="Set record_id in [dataset].",
        )
    if sanitizer.common_fit == "moments" and not sanitizer.set_aside:
        raise BadInput(
            "A common basis is fitted on records that every site sets aside.",
            remedy='Set basis = "sample" in [sanitizer].',
        )
    if context.keep_raw < 1:
        raise BadInput(
            "A site needs its checked records until the common release has ended.",
            remedy="Set keep_raw = 1 in [dataset].",
        )
    least = MIN_MOMENT_SITES if sanitizer.common_fit == "moments" else MIN_SITES
    if sites < least:
        raise BadInput(
            f"A common release with method '{context.method}' needs at least {least} sites; "
            f"{sites} are named.",
            remedy="Name more sites with --site NAME=FINGERPRINT.",
        )
    check_limits(context, is_centre=is_centre)
    return sanitizer
