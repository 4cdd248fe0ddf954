"""What an outsider could try on a release. One file each, one line here."""

from __future__ import annotations

from ppdm_core.attacks._needs import check_needs, needs_in_words
from ppdm_core.attacks.known_pairs import KnownPairs
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.attacks.shrinkage import Shrinkage
from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.types import Attack

# In the order in which an audit runs them: linkage uses the reconstructions of the others.
ATTACKS: dict[str, Attack] = {
    "transform_inverse": TransformInverse(),
    "shrinkage": Shrinkage(),
    "known_pairs": KnownPairs(),
    "record_linkage": RecordLinkage(),
}

__all__ = ["ATTACKS", "check_needs", "needs_in_words"]
