"""What an attack may need from its view, with the sentence and the reason if it is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ppdm_core.attacks._attack import Attack
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.model.release import PART
from ppdm_core.numerics.kernel_model import is_resampled
from ppdm_core.numerics.linear_map import has_map, has_noise


@dataclass(frozen=True)
class Need:
    """One thing that an attack can need from its view."""

    is_met: Callable[[AttackerView], bool]
    sentence: str
    reason: Reason = Reason.MISSING_KNOWLEDGE  # why the attack cannot run without it


def _has_records(view: AttackerView) -> bool:
    return any(each is not None and len(each) for each in (view.records, view.sample)) or bool(
        view.known is not None and len(view.known.rows)
    )


def _preserves_lengths(view: AttackerView) -> bool:
    public = view.public
    is_fixed = public.centre is None and "translation" not in public.facts
    is_exact = public.preserves_distances and is_fixed
    return is_exact or float(public.facts.get("squared_distance_ratio_mean", 0.0)) > 0


def _has_original_columns(view: AttackerView) -> bool:
    return bool(view.reconstructions) or view.public.space == "original"


_NEEDS: dict[str, Need] = {
    "known": Need(
        lambda view: view.known is not None and len(view.known.rows) > 0,
        "known records, each with a released row of its own (known_records in [attacker])",
    ),
    "sample": Need(
        lambda view: view.sample is not None and len(view.sample) > 0,
        "a sample of the same population (sample_share in [attacker])",
    ),
    "targets": Need(
        lambda view: view.targets is not None and view.targets.n > 0,
        "full records of persons to look for",
    ),
    "records": Need(
        lambda view: view.records is not None and len(view.records) > 0,
        "records known in full (known_records in [attacker])",
    ),
    "reference": Need(
        lambda view: view.reference is not None and view.reference.n > 0,
        "persons who are not in the release",
    ),
    "split_files": Need(lambda view: view.split_files is not None, "two columns or more"),
    "partial_columns": Need(lambda view: view.partial_columns is not None, "two columns or more"),
    "earlier_releases": Need(
        lambda view: view.earlier_releases is not None,
        "releases whose rows can be put together by record (record_id in [dataset])",
        Reason.SINGLE_RELEASE,
    ),
    "arrival_batches": Need(
        lambda view: view.arrival_batches is not None,
        "releases whose rows can be put together by record (record_id in [dataset])",
        Reason.SINGLE_RELEASE,
    ),
    "partner_rows": Need(
        lambda view: view.partner_rows is not None and len(view.partner_rows) > 0,
        "rows of several sites in one pool (ppdm site)",
    ),
    "related": Need(
        lambda view: view.related is not None,
        "related columns of the same persons at another party of a common release (ppdm site)",
    ),
    "site_moments": Need(
        lambda view: view.site_moments is not None,
        "moments that several sites exchanged for a common basis (ppdm site)",
    ),
    "leaked_map": Need(lambda view: view.leaked_map is not None, "a key that could leak"),
    "reconstructions": Need(
        _has_original_columns, "the original columns or a reconstruction of them"
    ),
    "known_or_sample": Need(
        _has_records,
        "a known record or a sample of the same population (known_records or sample_share in "
        "[attacker])",
    ),
    "map_or_leak": Need(
        lambda view: (
            has_map(view.public) or (view.leaked_map is not None and has_map(view.leaked_map))
        ),
        "a published linear map, or a secret one that could leak",
        Reason.NO_COMMON_COLUMN,
    ),
    "public.lengths": Need(_preserves_lengths, "a release that preserves lengths on average"),
    "public.resampled": Need(
        lambda view: is_resampled(view.public),
        "rows that were drawn around records by a kernel",
        Reason.METHOD_UNKNOWN,
    ),
    "public.map": Need(
        lambda view: has_map(view.public), "a published linear map", Reason.NO_COMMON_COLUMN
    ),
    "public.part": Need(
        lambda view: PART in view.public.facts,
        "a part of a common release with other columns of the same persons (ppdm site)",
    ),
    "public.noise": Need(
        lambda view: has_noise(view.public),
        "a published scale of the noise",
        Reason.METHOD_UNKNOWN,
    ),
}


def describe_needs(attack: Attack) -> list[str]:
    """Return one phrase for each need of the attack, in alphabetical order of the needs."""
    return [_NEEDS[need].sentence for need in sorted(attack.needs)]


def check_needs(attack: Attack, view: AttackerView) -> None:
    """Raise NotApplicable if the view lacks something that the attack needs.

    Its reason is that of the first missing need in alphabetical order, but METHOD_UNKNOWN takes
    precedence.
    """
    needs = (_NEEDS[need] for need in sorted(attack.needs))
    missing = [need for need in needs if not need.is_met(view)]
    if missing:
        reasons = [need.reason for need in missing]
        is_method_unknown = Reason.METHOD_UNKNOWN in reasons
        raise NotApplicable(
            f"The attack {attack.name} needs {' and '.join(need.sentence for need in missing)}.",
            reason=Reason.METHOD_UNKNOWN if is_method_unknown else reasons[0],
        )
