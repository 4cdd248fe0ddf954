"""What the centre of parties with other columns judges itself: the published sums.

The gate of each party judged its own part. What the sums say of a complete record is more, and the
limits on it are those of the centre.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ppdm_core.attacks.membership import Membership
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.audit.joined_linkage import SumNoise, score_joined_rows
from ppdm_core.audit.joined_membership import score_joined_membership
from ppdm_core.audit.self_test.known_answers import run_leak_tests
from ppdm_core.gates import GATES, GateInput
from ppdm_core.gates.score_limits import judge
from ppdm_core.gates.self_test import ATTACKS_WORK, REPAIR, explain_unproven, make_finding
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport
from ppdm_core.model.self_test import SelfTestResult
from ppdm_core.model.verdict import Finding
from tasks.context import ReleaseContext
from tasks.sites.rows import ReleasedTable
from tasks.sites.terms import find_column_method

ATTACKS = (RecordLinkage.name, Membership.name)  # on the sums


def score_sums(
    context: ReleaseContext, table: ReleasedTable, parties: int, digest: str
) -> AuditReport:
    """Return linkage to the sums, and membership in them; the same in every process.

    ``digest`` is that of the published file.
    """
    method = find_column_method(context.make_sanitizer())
    assert method is not None
    noise = None if method.noise_scale is None else SumNoise(method.noise_scale, parties)
    rng = np.random.default_rng(int(digest, 16))
    given = table.Y, table.label, noise, context.policy, rng
    return AuditReport((score_joined_rows(*given), score_joined_membership(*given)))


def judge_sums(context: ReleaseContext, guarantee: Guarantee, report: AuditReport) -> list[Finding]:
    """Return the findings by the limits of the centre: amplification, linkage and membership.

    The attacks behind them must notice planted leaks first, with the installation of the centre.
    """
    policy = context.policy
    gate_input = GateInput(report, guarantee, context.method, policy)
    judged = (judge(score, policy.limits[score.name]) for score in report.scores)
    works = f"Each of the {len(ATTACKS)} attacks on the sums noticed planted leaks."
    return [
        *GATES["amplification"].check(gate_input),
        *judged,
        make_finding(ATTACKS_WORK, list_unproven(), works, REPAIR),
    ]


@cache
def run_self_test() -> SelfTestResult:
    """Return what the attacks notice of planted leaks: the same in every run of this code."""
    return SelfTestResult("", "", tuple(each for name in ATTACKS for each in run_leak_tests(name)))


def list_unproven() -> list[str]:
    """Return why the scores of the centre do not count, for each attack that does not work."""
    return [why for name in ATTACKS if (why := explain_unproven(run_self_test(), name))]
