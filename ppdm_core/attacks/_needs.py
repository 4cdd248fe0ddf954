"""What an attack may ask for, and the sentence when it is not there."""

from __future__ import annotations

from collections.abc import Callable

from ppdm_core.model.attacker import Attack, AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.kernel_model import is_resampled
from ppdm_core.numerics.linear_map import has_map, has_noise


def _holds_people(view: AttackerView) -> bool:
    return any(each is not None and len(each) for each in (view.records, view.sample)) or bool(
        view.known is not None and len(view.known.rows)
    )


def _keeps_lengths(view: AttackerView) -> bool:
    public = view.public
    is_fixed = public.centre is None and "translation" not in public.facts
    is_exact = public.preserves_distances and is_fixed
    return is_exact or float(public.facts.get("squared_distance_ratio_mean", 0.0)) > 0


def _common_space(view: AttackerView) -> bool:
    return bool(view.reconstructions) or view.public.space == "original"


_NEEDS: dict[str, tuple[Callable[[AttackerView], bool], str]] = {
    "known": (
        lambda view: view.known is not None and len(view.known.rows) > 0,
        "known records, each with a released row of its own (known_records in [attacker])",
    ),
    "sample": (
        lambda view: view.sample is not None and len(view.sample) > 0,
        "a sample of the same population (sample_share in [attacker])",
    ),
    "targets": (
        lambda view: view.targets is not None and view.targets.n > 0,
        "full records of people to look for",
    ),
    "records": (
        lambda view: view.records is not None and len(view.records) > 0,
        "records known in full (known_records in [attacker])",
    ),
    "reference": (
        lambda view: view.reference is not None and view.reference.n > 0,
        "people who are not in the release",
    ),
    "files": (lambda view: view.files is not None, "two columns or more"),
    "partial": (lambda view: view.partial is not None, "two columns or more"),
    "earlier": (
        lambda view: view.earlier is not None,
        "releases whose rows can be put together by record (record_id in [dataset])",
    ),
    "came": (
        lambda view: view.came is not None,
        "releases whose rows can be put together by record (record_id in [dataset])",
    ),
    "leak": (lambda view: view.leak is not None, "a key that could leak"),
    "reconstructions": (
        _common_space,
        "the original columns or a reconstruction of them",
    ),
    "known_or_sample": (
        _holds_people,
        "a known record or a sample of the same population (known_records or sample_share in "
        "[attacker])",
    ),
    "map_or_leak": (
        lambda view: has_map(view.public) or (view.leak is not None and has_map(view.leak)),
        "a published linear map, or a secret one that could leak",
    ),
    "public.lengths": (_keeps_lengths, "a release that keeps lengths on average"),
    "public.resampled": (
        lambda view: is_resampled(view.public),
        "rows that were drawn around records, as kde_resample does",
    ),
    "public.map": (lambda view: has_map(view.public), "a published linear map"),
    "public.noise": (lambda view: has_noise(view.public), "a published scale of the noise"),
}


def needs_in_words(attack: Attack) -> list[str]:
    return [_NEEDS[need][1] for need in sorted(attack.needs)]


def check_needs(attack: Attack, view: AttackerView) -> None:
    missing = [_NEEDS[need][1] for need in sorted(attack.needs) if not _NEEDS[need][0](view)]
    if missing:
        raise NotApplicable(f"The attack {attack.name} needs {' and '.join(missing)}.")
