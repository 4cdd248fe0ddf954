from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks import ATTACKS, Attack, check_needs
from ppdm_core.attacks.column_order import ColumnOrder
from ppdm_core.attacks.known_sample_ica import KnownSampleIca
from ppdm_core.attacks.known_sample_pca import KnownSamplePca
from ppdm_core.attacks.low_bits import LowBits
from ppdm_core.attacks.release_averaging import ReleaseAveraging
from ppdm_core.attacks.release_differencing import ReleaseDifferencing
from ppdm_core.attacks.shrinkage import Shrinkage
from ppdm_core.attacks.source_record import SourceRecord
from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.attacks.trilateration import Trilateration
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from tests.support.views import make_public, make_records, make_view

Y = np.random.default_rng(0).random((6, 3))
HIDDEN = make_view(Y, public=make_public(Y))


def find_reason(attack: Attack, view=HIDDEN) -> Reason:
    with pytest.raises(NotApplicable) as caught:
        attack.attack(view, np.random.default_rng(0))
    return caught.value.reason


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        (Trilateration(), Reason.MISSING_KNOWLEDGE),
        (ReleaseAveraging(), Reason.SINGLE_RELEASE),
        (ReleaseDifferencing(), Reason.SINGLE_RELEASE),
        (TransformInverse(), Reason.NO_COMMON_COLUMN),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_check_needs_missing_need_raises_its_reason(attack, reason):
    assert find_reason(attack) is reason


@pytest.mark.parametrize("attack", [Shrinkage(), SourceRecord()], ids=lambda attack: attack.name)
def test_check_needs_several_missing_method_unknown_takes_precedence(attack):
    assert find_reason(attack) is Reason.METHOD_UNKNOWN


@pytest.mark.parametrize(
    "attack", [KnownSamplePca(), KnownSampleIca(), ColumnOrder()], ids=lambda attack: attack.name
)
@pytest.mark.parametrize("sample", [None, Y[:1], Y])
def test_secret_map_attacks_original_columns_columns_released(attack, sample):
    assert find_reason(attack, make_view(Y, sample=sample)) is Reason.COLUMNS_RELEASED


@pytest.mark.parametrize("attack", [KnownSamplePca(), KnownSampleIca()], ids=lambda a: a.name)
def test_known_sample_attacks_equal_records_too_few_records(attack):
    view = make_view(Y, public=make_public(Y), sample=np.ones((4, 3)))
    assert find_reason(attack, view) is Reason.TOO_FEW_RECORDS


def test_column_order_one_sample_record_too_few_records():
    view = make_view(Y, public=make_public(Y), sample=Y[:1])
    assert find_reason(ColumnOrder(), view) is Reason.TOO_FEW_RECORDS


def test_low_bits_rotated_columns_no_common_column():
    view = make_view(Y, public=make_public(Y), targets=make_records(Y))
    assert find_reason(LowBits(), view) is Reason.NO_COMMON_COLUMN


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_check_needs_every_attack_message_names_it(attack):
    with pytest.raises(NotApplicable, match=f"The attack {attack.name} needs"):
        check_needs(attack, HIDDEN)
