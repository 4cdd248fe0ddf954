"""What somebody who knows complete records learns from the sums about who is in the release.

As for linkage (``joined_linkage``), the centre has no true record, and takes its own rows in their
place. Random halves of them are released with fresh noise of the published distribution, and the
attack tells the persons of a half from the others. Without noise a row is a function of its
record, so that the rows are released as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ppdm_core.attacks.membership import Membership
from ppdm_core.audit.certifiable import count_judged_scores
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.evaluators import MembershipEvaluator
from ppdm_core.audit.joined_linkage import SumNoise, describe_sums, remove_noise
from ppdm_core.audit.scores import make_score
from ppdm_core.audit.simulation import AttackTrial, TrialOutcome, choose_half_participants
from ppdm_core.metrics.true_positive_rate import TruePositiveRate
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.policy import Policy
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import find_isolated_tenth

METRIC = TruePositiveRate()
MEMBERSHIP_RATE = f"{Membership.name}.{METRIC.name}"  # the name of the score
STORY = "Somebody who knows complete records asks who is in the sums of all parties."


def score_joined_membership(
    Y: Floats, label: Codes, noise: SumNoise | None, policy: Policy, rng: np.random.Generator
) -> Score:
    """Return the share of the persons in the sums that their complete records give away."""
    X = Y if noise is None else remove_noise(Y, noise.variance)
    return score_members(X, label, noise, policy, rng)


def score_members(
    X: Floats, label: Codes, noise: SumNoise | None, policy: Policy, rng: np.random.Generator
) -> Score:
    """Return the share of members found in sums of persons with these coefficients."""
    _, schema = describe_sums(X, noise)
    truth = OriginalTable(X, label, schema)
    outcomes = [attack_half(truth, noise, policy, rng) for _ in range(policy.splits)]
    evaluator = MembershipEvaluator(METRIC, truth, outcomes, policy.attacker.epsilon)
    return make_score(
        METRIC,
        MEMBERSHIP_RATE,
        evaluator.make_figures(Membership.name, find_isolated_tenth(X, rng), {}),
        level=policy.level,
        judged=count_judged_scores(policy),
        rng=rng,
        story=STORY,
        epsilon=policy.attacker.epsilon,
    )


def attack_half(
    truth: OriginalTable, noise: SumNoise | None, policy: Policy, rng: np.random.Generator
) -> TrialOutcome:
    """Release a random half of the persons, and return who the attack takes for its members."""
    n, d = truth.X.shape
    members = np.sort(rng.permutation(n)[: n // 2])
    Y = truth.X[members]
    if noise is not None:
        Y = Y + noise.draw(Y.shape, rng)
    public, _ = describe_sums(Y, noise)
    draw = ReleaseDraw(Y, public, members, members=members)
    attacker = replace(policy.attacker, known_records=0)  # known rows do not help
    roles = choose_half_participants(n, d, members, attacker, rng)
    trial = AttackTrial.create(truth, draw, roles, rng)
    view = trial.build_view(attacker.epsilon, policy.effort)
    view = replace(view, reconstructions={"sums": view.Y})
    return trial.make_outcome(Membership.goal, Membership().attack(view, rng))
