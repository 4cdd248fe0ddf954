"""Whether a policy refuses broken releases of small tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.self_test.broken_releases import make_broken_releases, make_noise
from ppdm_core.audit.self_test.policy_check import MAX_RECORDS, check_policy, limit_effort
from ppdm_core.gates.required_audits import RequiredAudits
from ppdm_core.gates.self_test import SelfTest
from ppdm_core.model.policy import Attacker, Limit, Policy
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.model.self_test import NOISE, PolicyCheck, ReleaseTest
from ppdm_core.numerics.linear_map import invert
from tests.contract.gate_inputs import change_policy_check
from tests.support.audit_cases import D, make_policy, make_truth
from tests.support.views import make_columns

N = 120
BAD = {"identity", "slight noise", "nearly identical"}  # of all columns with a public map
LINK, BREACH = "record_linkage.rate", "known_pairs.breach_rate"
COLUMNS = tuple(f"x{j}" for j in range(D))
NOISY = PublicParameters(
    "additive_noise",
    "original",
    COLUMNS,
    centre=np.full(D, 0.5),
    loadings=np.eye(D),
    law="laplace",
    scales=np.full(D, 0.3),
)
SECRET = PublicParameters("random_rotation", "rotated", COLUMNS, preserves_distances=True)
NARROW = PublicParameters("random_projection", "rotated", COLUMNS[:2])


def make_table(n: int = N) -> OriginalTable:
    """Return records of one class."""
    return replace(make_truth(n, seed=3), label=np.zeros(n, dtype=np.int32))


def limit_to(known: int = 20, **limits: float) -> Policy:
    """Return a policy that requires and limits the two attacks."""
    lines = {{"link": LINK, "breach": BREACH}[name]: value for name, value in limits.items()}
    attacks = tuple(name.split(".")[0] for name in lines)
    return make_policy(attacks, lines, "standard", known_records=known, sample_share=0.0)


STRICT = limit_to(link=0.2, breach=0.2)


def run_check(
    policy: Policy, public: PublicParameters = NOISY, n: int = N, **draw: Any
) -> PolicyCheck:
    truth = make_table(n)
    Y = np.random.default_rng(4).laplace(0.0, 0.3, (n, len(public.columns)))
    return check_policy(Auditor(truth, [ReleaseDraw(Y, public, **draw)], policy, b"seed"))


def list_refused(check: PolicyCheck) -> dict[str, tuple[str, ...]]:
    return {each.name: each.refused_by for each in check.bad}


def test_check_policy_strict_refuses_broken_releases_but_not_noise():
    check = run_check(STRICT)
    assert set(list_refused(check)) == BAD
    assert list_refused(check)["identity"] == ("known_pairs", "record_linkage")
    assert all(list_refused(check).values())
    assert check.noise.name == NOISE
    assert check.noise.refused_by == ()
    assert check.powerless == {}
    assert check.records == N


def test_check_policy_loose_limits_refuse_nothing():
    """Each limit is the largest value of its rate, so that no release breaks it."""
    loose = limit_to(link=1.0, breach=1.0)
    check = run_check(loose)
    assert list_refused(check) == dict.fromkeys(BAD, ())
    assert set(check.powerless) == {"known_pairs", "record_linkage"}
    finding = list(SelfTest().check(change_policy_check(bad=check.bad)))[-1]
    assert finding.outcome == "FAIL"
    assert "the records as they are" in finding.why
    assert "a thousandth of the range" in finding.why
    assert "a hundredth of the range" in finding.why
    assert "not audited" in finding.why


@pytest.mark.slow
def test_check_policy_limits_that_would_refuse_do_refuse():
    loose = limit_to(link=1.0, breach=1.0)
    check = run_check(loose)
    for test in check.bad:
        name, line = max(test.refusing_limits.items(), key=lambda item: item[1])
        limits = {**loose.limits, name: replace(loose.limits[name], value=line)}
        assert list_refused(run_check(replace(loose, limits=limits)))[test.name]
    finding = list(SelfTest().check(change_policy_check(bad=check.bad)))[-1]
    words = f"{name} of that bad release is {test.observed[name]:.3g}; a limit of {line:g} would"
    assert words in finding.why
    assert "The release itself must keep a stricter limit" in finding.remedy


def test_check_policy_attack_without_any_gain_no_limit_would_refuse():
    unrefused = change_policy_check(bad=(ReleaseTest("identity", ()),))
    finding = list(SelfTest().check(unrefused))[-1]
    assert "No limit on these attacks can" in finding.why


def test_check_policy_limit_within_interval_refuses_nothing():
    """A copy is found completely, but 100 persons leave open whether that is above the limit."""
    assert not any(each.refused_by for each in run_check(limit_to(link=0.985)).bad)


def test_check_policy_without_limits_refuses_nothing():
    without = replace(STRICT, limits={})
    assert list_refused(run_check(without)) == dict.fromkeys(BAD, ())


def test_check_policy_impossible_limit_refuses_noise():
    impossible = Limit(1e-9, "DPO", "no record at all", absolute=True)
    strict = replace(STRICT, limits={LINK: impossible})
    truth = make_table()
    draw = ReleaseDraw(np.zeros((N, D)), NOISY)  # one row for all records: some are found by chance
    check = check_policy(Auditor(truth, [draw], strict, b"seed"))
    assert check.noise.refused_by == ("record_linkage",)


def test_check_policy_large_table_sampled():
    one = limit_to(breach=0.2)
    assert run_check(one, n=510).records == MAX_RECORDS == 500
    assert run_check(one, n=90).records == 90


def test_limit_effort_known_records_at_most_a_quarter():
    assert limit_effort(limit_to(known=9_000), 500).attacker.known_records == 125
    assert limit_effort(limit_to(known=20), 500).attacker.known_records == 20


def test_check_policy_secret_map_tries_rotation():
    assert set(list_refused(run_check(STRICT, SECRET))) == BAD | {"rotation"}
    assert list_refused(run_check(STRICT, SECRET))["rotation"] == ("known_pairs",)
    nobody_known = limit_to(known=0, link=0.2, breach=0.2)
    blind = run_check(nobody_known, SECRET)
    assert list_refused(blind)["rotation"] == ()
    assert "needs known records" in blind.powerless["known_pairs"]


def test_make_broken_releases_fewer_columns_clear_columns():
    truth, rng = make_table(), np.random.default_rng(0)
    draw = ReleaseDraw(np.zeros((N, 2)), NARROW)
    ((name, bad),) = make_broken_releases(truth, draw, rng)
    assert name == "clear columns"
    assert all(any(np.array_equal(y, x) for x in truth.X.T) for y in bad.Y.T)


def test_make_broken_releases_components_without_noise():
    L = np.linalg.qr(np.random.default_rng(1).normal(size=(D, 2)))[0]
    public = replace(NOISY, space="components", columns=COLUMNS[:2], loadings=L)
    truth = make_table()
    bad = dict(
        make_broken_releases(truth, ReleaseDraw(np.zeros((N, 2)), public), np.random.default_rng(0))
    )
    assert np.allclose(bad["identity"].Y, (truth.X - 0.5) @ L)
    off = np.abs(bad["slight noise"].Y - bad["identity"].Y)
    assert 0 < off.max() < 0.02 * np.ptp(bad["identity"].Y)


def test_check_policy_resampled_rows_only_linkage_refuses():
    """known_pairs needs one row for each record, so that only linkage can refuse."""
    source = np.random.default_rng(5).integers(0, N, N)
    check = run_check(STRICT, source=source)
    assert list_refused(check) == dict.fromkeys(BAD, ("record_linkage",))
    assert "released row of its own" in check.powerless["known_pairs"]


def test_make_broken_releases_categories_identity_and_noise():
    column = Categorical("town", tuple("abcdefgh"))
    rng = np.random.default_rng(6)
    truth = replace(
        make_table(), X=np.zeros((N, 0)), schema=Schema((), (column,)), C=rng.integers(0, 8, (N, 1))
    )
    public = PublicParameters(
        "randomized_response", "original", (), responses=(Response(column, 3.0),)
    )
    draw = ReleaseDraw(np.zeros((N, 0)), public, C=np.zeros((N, 1), dtype=np.int32))
    ((name, bad),) = make_broken_releases(truth, draw, rng)
    assert name == "identity"
    assert np.array_equal(bad.C, truth.codes)
    noise = make_noise(truth, draw, rng).C
    assert noise.shape == (N, 1)
    assert set(np.unique(noise)) == set(range(8))
    assert (noise == truth.codes).mean() < 0.3


def test_required_audits_powerless_attack_review():
    gate_input = change_policy_check(
        powerless={"record_linkage": "It keeps its limit even on a copy."}
    )
    findings = {each.check: each for each in RequiredAudits().check(gate_input)}
    assert findings["covered.linkage"].outcome == "REVIEW"
    assert "record_linkage" in findings["covered.linkage"].why
    assert findings["covered.reconstruction"].outcome == "PASS"
    finding = list(SelfTest().check(gate_input))[-1]
    assert (finding.outcome, "record_linkage" in finding.why.split("power")[1]) == ("PASS", True)


@pytest.mark.extended
@pytest.mark.parametrize("known", [0, 20])
def test_check_policy_repeated_same_result(known: int):
    one, two = (run_check(replace(STRICT, attacker=Attacker(known))) for _ in range(2))
    assert one == two


def read_shares(X: np.ndarray, public: PublicParameters) -> float:
    """Return the share of records that an attacker reads from a nearly identical release."""
    truth = OriginalTable(X, np.zeros(len(X), dtype=np.int32), Schema(()))
    draw = ReleaseDraw(np.zeros((len(X), len(public.columns))), public)
    bad = dict(make_broken_releases(truth, draw, np.random.default_rng(7)))
    Y = bad["nearly identical"].Y
    assert not np.array_equal(Y, bad["identity"].Y)
    X_hat = invert(public, Y) if public.space == "components" else Y
    error = np.linalg.norm(X_hat - X, axis=1)
    return float(np.mean(error <= 0.05 * np.linalg.norm(X, axis=1)))


@pytest.mark.parametrize("d", [1, 2, 8, 60])
@pytest.mark.parametrize("kind", ["uniform", "heavy tails", "far from zero", "components"])
def test_make_broken_releases_nearly_identical_records_are_read(kind: str, d: int):
    rng = np.random.default_rng(d)
    X = rng.random((200, d))
    if kind == "heavy tails":
        X = rng.lognormal(0.0, 2.0, (200, d))
    elif kind == "far from zero":
        X += 100.0
    public = replace(
        NOISY, columns=tuple(f"x{j}" for j in range(d)), centre=np.zeros(d), loadings=np.eye(d)
    )
    if kind == "components":
        L = rng.normal(size=(d, d)) + 2.0 * np.eye(d)
        public = replace(public, space="components", loadings=L)
    assert read_shares(X, public) >= 0.9


def test_make_broken_releases_fewer_components_not_nearly_identical():
    L = np.linalg.qr(np.random.default_rng(1).normal(size=(D, 2)))[0]
    public = replace(NOISY, space="components", columns=COLUMNS[:2], loadings=L)
    draw = ReleaseDraw(np.zeros((N, 2)), public)
    bad = dict(make_broken_releases(make_table(), draw, np.random.default_rng(0)))
    assert set(bad) == {"identity", "slight noise"}


@pytest.mark.slow
def test_check_policy_nearly_identical_table_needs_a_limit_that_refuses_it():
    """One column: linkage finds most of a copy, and few in noise of a hundredth of the range."""
    n = 500
    truth = replace(make_table(n), X=make_table(n).X[:, :1], schema=make_columns(1))
    public = replace(NOISY, columns=COLUMNS[:1], centre=np.full(1, 0.5), loadings=np.eye(1))
    draw = ReleaseDraw(np.random.default_rng(4).random((n, 1)), replace(public, scales=np.ones(1)))
    blind = replace(limit_to(link=0.3, breach=0.2), attacker=Attacker(20, 0.0, 1e-4))
    found = list_refused(check_policy(Auditor(truth, [draw], blind, b"seed")))
    assert found["identity"] and found["slight noise"]
    assert found["nearly identical"] == ()
    unrefused = change_policy_check(bad=(ReleaseTest("nearly identical", ()),))
    finding = list(SelfTest().check(unrefused))[-1]
    assert finding.outcome == "FAIL"
    assert "noise of at most a hundredth of the range" in finding.why
    seeing = replace(blind, attacker=Attacker(20, 0.0, 0.1))
    assert list_refused(check_policy(Auditor(truth, [draw], seeing, b"seed")))["nearly identical"]


@pytest.mark.parametrize("size", [3, 60])
def test_check_policy_label_is_no_reason_to_refuse_noise(size: int):
    """Classes of three give a third of the persons: the label is exchanged with the numbers."""
    label = Categorical("label", tuple(f"c{i}" for i in range(N)))
    truth = replace(make_table(), label=(np.arange(N) // size).astype(np.int32))
    truth = replace(truth, schema=replace(truth.schema, label=label))
    draw = ReleaseDraw(np.random.default_rng(4).laplace(0.0, 0.3, (N, D)), NOISY)
    check = check_policy(Auditor(truth, [draw], limit_to(link=0.05, breach=0.2), b"seed"))
    assert check.noise.refused_by == ()
    assert all(each.refused_by for each in check.bad)


@pytest.mark.slow
def test_check_policy_limit_on_learned_linkage_tries_noise_with_a_hole_and_rearranged_values():
    attacks = ("learned_linkage", "record_linkage")
    limits = {f"{name}.rate": 0.2 for name in attacks}
    policy = make_policy(attacks, limits, "standard", known_records=30, sample_share=0.0)
    refused = list_refused(run_check(policy, n=160))
    assert {"noise with a hole", "rearranged values"} <= set(refused)
    assert refused["noise with a hole"] == ("learned_linkage",)
    assert refused["rearranged values"]
