from __future__ import annotations

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


def test_every_sanitizer_has_a_case():
    assert {case.key for case in cases.SANITIZERS.values()} == set(SANITIZERS)


@each_key
def test_named_alike(key: str):
    checks.check_named_alike(SANITIZERS[key], key, cases.SANITIZERS)


@each_key
def test_documented(key: str):
    checks.check_documented(SANITIZERS[key])


@each_key
def test_parameters_are_checked(key: str):
    checks.check_parameters_are_checked(SANITIZERS[key])


@each_case
def test_input_untouched(case: SanitizerCase):
    checks.check_input_untouched(case.make())


@each_case
def test_same_key_same_output(case: SanitizerCase):
    checks.check_same_key_same_output(case.make())


@each_case
def test_keys_matter(case: SanitizerCase):
    checks.check_keys_matter(case.make())


@each_case
def test_global_state_unmoved(case: SanitizerCase):
    checks.check_global_state_unmoved(case.make())


@each_case
def test_storage_does_not_matter(case: SanitizerCase, tmp_path: Path):
    checks.check_storage_does_not_matter(case.make(), tmp_path)


@each_case
def test_steps_hold_no_state(case: SanitizerCase):
    checks.check_steps_hold_no_state(case.make())


@each_case
def test_declared_shape(case: SanitizerCase):
    checks.check_declared_shape(case.make())


@each_case
def test_verbatim_within_law(case: SanitizerCase):
    checks.check_verbatim_within_law(case.make())


@pytest.mark.parametrize("bad", BAD)
@each_case
def test_bad_input(case: SanitizerCase, bad: str):
    checks.check_bad_input(case.make(), BAD[bad], str(CANARY)[:8])


@each_case
def test_more_noise_more_distortion(case: SanitizerCase):
    if isinstance(case.noisier, str):
        pytest.skip(case.noisier)
    checks.check_more_noise_more_distortion(case.make(), case.make(**case.noisier))


@each_case
def test_unchanged_records_keep_their_bytes(case: SanitizerCase):
    checks.check_unchanged_records_keep_their_bytes(case.make())


@each_case
def test_every_draw_has_a_name(case: SanitizerCase):
    checks_draws.check_every_draw_has_a_name(case.make())


@each_case
def test_charges_add_up(case: SanitizerCase):
    checks_draws.check_charges_add_up(case.make())


@each_case
def test_promise(case: SanitizerCase):
    checks.check_promise(case.make())
