"""On tiny tables of any shape, every attack runs or does not apply; none fails."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ppdm_core import audit_tables
from ppdm_core.attacks import ATTACKS
from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.policy import Attacker, Effort, Policy
from ppdm_core.model.score import is_sound
from tests.contract import cases
from tests.support.tiny_tables import SHAPES, TinyTable, make_tiny_audit

tables = st.builds(
    TinyTable,
    seed=st.integers(0, 10_000),
    n=st.integers(4, 40),
    d=st.integers(1, 14),
    classes=st.integers(1, 5),
    shape=st.sampled_from(SHAPES),
)
CHEAP = [id_ for id_ in cases.SANITIZERS if not id_.startswith("nonmetric_mds")]


def run_attack(
    attack: str, table: TinyTable, method: str, known: int, effort: Effort = "quick"
) -> None:
    try:
        scores = make_tiny_audit(table, cases.SANITIZERS[method].make(), attack, known, effort).run(
            attack
        )
    except (BadInput, NotApplicable):  # the method, or the attack, does not apply
        return
    assert scores
    for score in scores:
        assert is_sound(score), score.name


@pytest.mark.parametrize("attack", ATTACKS)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(table=tables, method=st.sampled_from(CHEAP), known=st.integers(0, 40))
def test_attack_tiny_table_runs_or_does_not_apply(
    attack: str, table: TinyTable, method: str, known: int
):
    run_attack(attack, table, method, known)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=tables,
    method=st.sampled_from(list(cases.SANITIZERS)),
    known=st.integers(0, 40),
    effort=st.sampled_from(["quick", "standard"]),
)
def test_attack_many_tiny_tables_runs_or_does_not_apply(
    attack: str, table: TinyTable, method: str, known: int, effort: Effort
):
    run_attack(attack, table, method, known, effort)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(table=tables, outside=st.integers(3, 40), known=st.integers(0, 10), aligned=st.booleans())
def test_audit_tables_tiny_tables_no_attack_fails(
    table: TinyTable, outside: int, known: int, aligned: bool
):
    rng = np.random.default_rng(table.seed)
    X = table.make_rows(cases.SANITIZERS["random_rotation"].make()).whole.X
    policy = Policy(tuple(ATTACKS), {}, Attacker(known, 0.1, 0.1), effort="quick")
    control = X[rng.integers(0, len(X), outside)] + rng.normal(0.0, 0.5, (outside, X.shape[1]))
    try:
        report = audit_tables(
            X, X + rng.laplace(size=X.shape), control=control, aligned=aligned, policy=policy
        )
    except BadInput:
        return
    assert report.failed == {}
