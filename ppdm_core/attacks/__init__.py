"""Attacks that an outsider could try on a release: one file each, one line here."""

from __future__ import annotations

from ppdm_core.attacks._attack import Attack, ExplainsError
from ppdm_core.attacks._column_linkage import ColumnLinkage
from ppdm_core.attacks._needs import check_needs, describe_needs
from ppdm_core.attacks.attribute_inference import AttributeInference
from ppdm_core.attacks.colluding_sites import ColludingSites
from ppdm_core.attacks.column_order import ColumnOrder
from ppdm_core.attacks.correlation_filter import CorrelationFilter
from ppdm_core.attacks.kernel_support import KernelSupport
from ppdm_core.attacks.known_pairs import KnownPairs
from ppdm_core.attacks.known_records import KnownRecords
from ppdm_core.attacks.known_sample_ica import KnownSampleIca
from ppdm_core.attacks.known_sample_pca import KnownSamplePca
from ppdm_core.attacks.learned_linkage import LearnedLinkage
from ppdm_core.attacks.linkability import Linkability
from ppdm_core.attacks.low_bits import LowBits
from ppdm_core.attacks.membership import Membership
from ppdm_core.attacks.norm_bounds import NormBounds
from ppdm_core.attacks.other_party import OtherParty
from ppdm_core.attacks.pooled_moments import PooledMoments
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.attacks.related_party import RelatedParty
from ppdm_core.attacks.release_averaging import ReleaseAveraging
from ppdm_core.attacks.release_differencing import ReleaseDifferencing
from ppdm_core.attacks.shrinkage import Shrinkage
from ppdm_core.attacks.singling_out import SinglingOut
from ppdm_core.attacks.source_record import SourceRecord
from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.attacks.trilateration import Trilateration

# In the order in which an audit runs them: linkage and others use what reconstruction got.
ATTACKS: dict[str, Attack] = {
    "transform_inverse": TransformInverse(),
    "correlation_filter": CorrelationFilter(),
    "shrinkage": Shrinkage(),
    "known_pairs": KnownPairs(),
    "known_records": KnownRecords(),
    "known_sample_pca": KnownSamplePca(),
    "known_sample_ica": KnownSampleIca(),
    "trilateration": Trilateration(),
    "column_order": ColumnOrder(),
    "other_party": OtherParty(),
    "pooled_moments": PooledMoments(),
    "release_averaging": ReleaseAveraging(),
    "norm_bounds": NormBounds(),
    "source_record": SourceRecord(),
    "kernel_support": KernelSupport(),
    "low_bits": LowBits(),
    "record_linkage": RecordLinkage(),
    "colluding_sites": ColludingSites(),
    "learned_linkage": LearnedLinkage(),
    "release_differencing": ReleaseDifferencing(),
    "membership": Membership(),
    "attribute_inference": AttributeInference(),
    "related_party": RelatedParty(),
    "singling_out": SinglingOut(),
    "linkability": Linkability(),
}

__all__ = [
    "ATTACKS",
    "Attack",
    "ColumnLinkage",
    "ExplainsError",
    "check_needs",
    "describe_needs",
]
