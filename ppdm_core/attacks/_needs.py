"""What an attack may ask for, and the sentence when it is not there."""

from __future__ import annotations

from collections.abc import Callable

from ppdm_core.errors import NotApplicable
from ppdm_core.public_map import has_map, has_noise
from ppdm_core.types import Attack, AttackerView


def _common_space(view: AttackerView) -> bool:
    return bool(view.reconstructions) or view.public.space == "original"


_NEEDS: dict[str, tuple[Callable[[AttackerView], bool], str]] = {
    "known": (
        lambda view: view.known is not None and len(view.known.rows) > 0,
        "known records with their released rows (known_records in [attacker])",
    ),
    "sample": (
        lambda view: view.sample is not None and len(view.sample) > 0,
        "a sample of the same population (sample_share in [attacker])",
    ),
    "targets": (
        lambda view: view.targets is not None and len(view.targets) > 0,
        "full records of people to look for",
    ),
    "reconstructions": (
        _common_space,
        "the original columns or a reconstruction of them",
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
