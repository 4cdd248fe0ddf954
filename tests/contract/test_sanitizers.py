from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.sanitizers import SANITIZERS
from tests.contract import cases, checks, checks_draws
from tests.contract.cases import SanitizerCase
from tests.support.tables import make_rows, make_schema, make_table

each_case = pytest.mark.parametrize("case", cases.SANITIZERS.values(), ids=cases.SANITIZERS)
each_key = pytest.mark.parametrize("key", SANITIZERS)

CANARY = 0.61803398874


def poisoned(value: float) -> np.ndarray:
    X = make_table().whole.X.copy()
    X[7, 2] = value
    X[8, 3] = CANARY
    return X


def constant(low: float, high: float, from_data: bool) -> tuple[np.ndarray, Schema]:
    X = make_table().whole.X.copy()
    X[:, 1] = CANARY
    columns = list(make_schema().numeric)
    columns[1] = Numeric("x1", low, high, from_data)
    return X, Schema(tuple(columns))


BAD = {
    "NaN": make_rows(poisoned(np.nan)),
    "infinite": make_rows(poisoned(np.inf)),
    "minus infinite": make_rows(poisoned(-np.inf)),
    "one row": make_rows(np.full((1, 5), CANARY)),
    "two equal rows": make_rows(np.full((2, 5), CANARY)),
    "constant column": make_rows(*constant(0.0, 4.0, False)),
    "constant column with bounds from data": make_rows(*constant(CANARY, CANARY, True)),
    "one column": make_table(d=1),
    "fewer rows than columns": make_table(n=3),
    "outside its bounds": make_rows(poisoned(1e30)),
}


def test_sanitizers_each_has_a_case():
    assert {case.key for case in cases.SANITIZERS.values()} == set(SANITIZERS)


@each_key
def test_sanitizer_name_same_in_four_places(key: str):
    checks.check_named_alike(SANITIZERS[key], key, cases.SANITIZERS)


@each_key
def test_sanitizer_docstring_has_every_section(key: str):
    checks.check_documented(SANITIZERS[key])


@each_key
def test_sanitizer_bad_parameters_refused(key: str):
    checks.check_parameters_are_checked(SANITIZERS[key])


@each_case
def test_sanitizer_input_untouched(case: SanitizerCase):
    checks.check_input_untouched(case.make())


@each_case
def test_sanitizer_same_key_same_output(case: SanitizerCase):
    checks.check_same_key_same_output(case.make())


@each_case
def test_sanitizer_other_keys_other_output(case: SanitizerCase):
    checks.check_keys_matter(case.make())


@each_case
def test_sanitizer_global_generators_untouched(case: SanitizerCase):
    checks.check_global_state_unmoved(case.make())


@each_case
def test_sanitizer_any_storage_same_bytes(case: SanitizerCase, tmp_path: Path):
    checks.check_storage_does_not_matter(case.make(), tmp_path)


@each_case
def test_sanitizer_steps_repeated_same_blocks(case: SanitizerCase):
    checks.check_steps_hold_no_state(case.make())


@each_case
def test_sanitizer_output_has_declared_shape(case: SanitizerCase):
    checks.check_declared_shape(case.make())


@each_case
def test_sanitizer_verbatim_cells_within_chance(case: SanitizerCase):
    checks.check_verbatim_within_chance(case.make())


@pytest.mark.parametrize("bad", BAD)
@each_case
def test_sanitizer_bad_input_result_or_sentence(case: SanitizerCase, bad: str):
    checks.check_bad_input(case.make(), BAD[bad], str(CANARY)[:8])


@each_case
def test_sanitizer_more_noise_more_distortion(case: SanitizerCase):
    if isinstance(case.noisier, str):
        pytest.skip(case.noisier)
    checks.check_more_noise_more_distortion(case.make(), case.make(**case.noisier))


@each_case
def test_sanitizer_advice_reveals_less(case: SanitizerCase):
    if isinstance(case.noisier, str):
        pytest.skip(case.noisier)
    checks.check_advice_reveals_less(case.make(), case.make(**case.noisier))


@each_key
def test_sanitizer_advice_names_its_parameters(key: str):
    cls = SANITIZERS[key]
    assert set(cls.more_private) <= {field.name for field in fields(cls)}


@each_case
def test_sanitizer_inserted_record_others_same_bytes(case: SanitizerCase):
    checks.check_unchanged_records_keep_their_bytes(case.make())


@each_case
def test_sanitizer_changed_record_new_draw_name(case: SanitizerCase):
    checks_draws.check_every_draw_has_a_name(case.make())


@each_case
def test_sanitizer_charges_sum_to_guarantee(case: SanitizerCase):
    checks_draws.check_charges_add_up(case.make())


@each_case
def test_sanitizer_guarantee_consistent(case: SanitizerCase):
    checks.check_guarantee(case.make())


@each_case
def test_sanitizer_weaker_promises_named(case: SanitizerCase):
    checks.check_weaker_promises_named(case.make())
