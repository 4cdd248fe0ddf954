"""Moments of one site: what is left of the sum when all other sites subtract theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.attacks.pooled_moments import PooledMoments
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import OriginalTable, PartnerRows, ReleaseDraw
from ppdm_core.audit.self_test.leaks import PlantedLeak, leak_pooled_moments
from ppdm_core.audit.self_test.trial import LeakAuditor, is_noticed
from ppdm_core.model.attacker import SiteMoments
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.integer_moments import IntegerMoments, sum_moments
from ppdm_core.numerics.masks import add_masks, sum_masked
from tests.support.views import make_columns, make_view

D, B = 4, 0.03


def score(planted: PlantedLeak):
    return LeakAuditor(planted, PooledMoments.name, b"seed").score(PooledMoments.name)


def test_pooled_moments_of_another_site_notice_nothing():
    """The planted leak is noticed by the moments of this site, and not by the rows alone."""
    planted = leak_pooled_moments(np.random.default_rng(0))
    assert planted.moments is not None
    assert is_noticed(score(planted))
    turned = planted.moments.covariance.copy()
    turned[0, 1:] *= -1.0  # as at the other sites
    turned[1:, 0] *= -1.0
    assert not is_noticed(
        score(replace(planted, moments=replace(planted.moments, covariance=turned)))
    )


def test_pooled_moments_linear_candidate_is_the_conditional_mean():
    """Of normal records and one noisy component, by the textbook formula."""
    mean, S = np.array([0.4, 0.7]), np.array([[0.04, 0.03], [0.03, 0.09]])
    variance = 2 * B**2
    public = PublicParameters(
        "pca_laplace",
        "components",
        ("component_1",),
        np.full(2, 0.5),
        np.array([[1.0], [0.0]]),
        "laplace",
        np.full(1, B),
    )
    z = np.array([[-0.05], [0.1], [0.3]])
    view = make_view(
        z,
        schema=make_columns(2),
        public=public,
        partner_rows=np.array([2]),
        site_moments=SiteMoments(100, mean, S),
    )
    found = PooledMoments().attack(view, np.random.default_rng(0)).candidates["linear"]
    surprise = (z[:, 0] - (mean[0] - 0.5)) / (S[0, 0] + variance)
    assert found == pytest.approx(mean + np.outer(surprise, S[0]))


def test_pooled_moments_without_exchanged_moments_do_not_apply():
    planted = replace(leak_pooled_moments(np.random.default_rng(0)), moments=None)
    with pytest.raises(NotApplicable, match="exchanged for a common basis"):
        score(planted)


def test_exact_mean_and_covariance_are_those_that_other_sites_compute_from_the_masked_sum():
    rng = np.random.default_rng(3)
    tables = {name: rng.random((20, D)) for name in ("east", "north", "south")}
    schema = make_columns(D)
    sums = {name: sum_moments(ArrayRows(schema, X)) for name, X in tables.items()}
    secrets = {frozenset(pair): bytes([k] * 32) for k, pair in enumerate(["en", "es", "ns"])}

    def mask(name: str) -> list[int]:
        shared = {
            other: secrets[frozenset((name[0], other[0]))] for other in tables if other != name
        }
        return add_masks(sums[name].as_list(), name, shared, ("roll",))

    total = sum_masked([mask(name) for name in tables])
    others = [sums[name].as_list() for name in ("east", "south")]
    left = [each - sum(parts) for each, *parts in zip(total, *others, strict=True)]
    found = IntegerMoments.from_list(left, D)
    assert found.n == 20
    assert found.compute_exact_mean(schema) == pytest.approx(tables["north"].mean(axis=0), abs=1e-5)
    assert found.compute_covariance(schema) == pytest.approx(np.cov(tables["north"].T), abs=1e-5)


def make_site(rng: np.random.Generator, n: int, slope: float) -> np.ndarray:
    """Return records whose last columns follow the first ones in a way of this site."""
    level = rng.random((n, 2))
    others = 0.5 + slope * (level - 0.5) + 0.03 * rng.standard_normal((n, 2))
    return np.clip(np.hstack([level, others]), 0.0, 1.0)


def make_auditor(*, has_moments: bool, n: int = 150) -> Auditor:
    """An audit of two noisy columns of four, in a pool with a site of another kind."""
    rng = np.random.default_rng(8)
    X, further, theirs = (make_site(rng, n, slope) for slope in (0.9, 0.9, -0.9))
    schema = Schema(make_columns(D).numeric, label=Categorical("y", ("a", "b")))
    truth = OriginalTable(X, np.zeros(n, dtype=np.int32), schema)
    public = PublicParameters(
        "pca_laplace",
        "components",
        ("component_1", "component_2"),
        np.full(D, 0.5),
        np.eye(D)[:, :2],
        "laplace",
        np.full(2, B),
    )

    def release(records: np.ndarray) -> np.ndarray:
        return records[:, :2] - 0.5 + rng.laplace(0.0, B, (n, 2))

    moments = SiteMoments(n, further.mean(axis=0), np.cov(further.T))
    partners = PartnerRows(
        release(theirs), np.zeros(n, dtype=np.int32), moments if has_moments else None
    )
    draw = ReleaseDraw(release(X), public, C=np.zeros((n, 0), dtype=np.int32), partners=partners)
    policy = Policy(
        required=("shrinkage", "pooled_moments", "colluding_sites", "record_linkage"),
        limits={},
        attacker=Attacker(known_records=0),
        effort="quick",
    )
    return Auditor(truth, [draw], policy, b"seed")


def find_value(auditor: Auditor, attack: str, name: str) -> float:
    return next(each.value for each in auditor.run(attack) if each.name == name)


def test_pooled_moments_recover_records_that_the_rows_alone_do_not():
    auditor = make_auditor(has_moments=True)
    rows_alone = find_value(auditor, "shrinkage", "shrinkage.breach_rate")
    assert find_value(auditor, "pooled_moments", "pooled_moments.breach_rate") > rows_alone + 0.3


def test_colluding_sites_find_more_persons_known_in_part_by_moments():
    name = "colluding_sites.partial.rate"
    with_moments, without = (
        find_value(make_auditor(has_moments=each), "colluding_sites", name)
        for each in (True, False)
    )
    assert with_moments > without + 0.1


def test_record_linkage_does_not_use_what_only_other_sites_know():
    auditor = make_auditor(has_moments=True)
    for attack, expected in (("record_linkage", False), ("colluding_sites", True)):
        (outcome,) = auditor.run_trials(ATTACKS[attack])
        found = any(name.startswith("nearest:pooled_moments") for name in outcome.candidates)
        assert found == expected, attack
