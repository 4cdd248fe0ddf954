from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.audit.self_test.must_catch import (
    LEAST_NOTICED,
    MOST_ALARMS,
    REPETITIONS,
    plants_for,
    relied_on,
)
from ppdm_core.gates._gate import Evidence
from ppdm_core.model.self_test import NOISE, Coverage, Proof, SelfTestResult
from ppdm_core.model.verdict import Finding

ATTACKS_WORK, POLICY_COVERS = "self_test.attacks", "self_test.policy"
COVERAGE = "coverage"  # of the policy, among what failed
WORDS = {
    "identity": "the records as they are (in the columns that this method releases)",
    "slight noise": "the records with noise of a thousandth of the range",
    "rotation": "the records rotated",
    "clear columns": "some columns as they are",
    "verbatim rows": "a few records as they are among noise",
}


@dataclass(frozen=True)
class SelfTest:
    """The audit proved itself: its attacks work, and this policy refuses bad releases.

    Every attack that the verdict stands on noticed the leaks that were planted for it in at least
    17 of 20 trials, and took noise for one in at most 3. On a sample of the real table, each bad
    release that the method could turn into is refused through a limit, and noise is not.
    """

    name: ClassVar[str] = "self_test"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        result = evidence.report.self_test
        why = unusable(result, evidence)
        if result is None or why is not None:
            yield Finding(self.name, "FAIL", f"{why} So the release is not audited: run it again.")
            return
        names = relied_on(evidence.policy)
        weak = list(filter(None, (unproven(result, name) for name in names)))
        works = f"Each of the {len(names)} checks that the verdict stands on noticed planted leaks."
        yield finding(ATTACKS_WORK, weak, works)
        yield finding(POLICY_COVERS, list(uncovered(result)), covered_words(result.coverage))


def finding(check: str, complaints: list[str], good: str) -> Finding:
    if not complaints:
        return Finding(check, "PASS", good)
    return Finding(check, "FAIL", f"{' '.join(complaints)} So the release is not audited.")


def unusable(result: SelfTestResult | None, evidence: Evidence) -> str | None:
    if result is None:
        return "The audit did not test itself."
    if not evidence.code_version or result.code_version != evidence.code_version:
        return "The audit tested itself with other code."
    if result.policy_digest != evidence.policy.digest:
        return "The audit tested itself with another policy."
    return None


def unproven(result: SelfTestResult, name: str) -> str | None:
    """Why nothing that this attack says counts."""
    if name in result.failed:
        return f"{name} failed on a planted leak ({result.failed[name]})."
    plants = plants_for(name)
    if not plants:
        return f"No leak is planted for {name}, so nothing shows that it works."
    wanted = Counter([*plants, NOISE])
    found = {proof.plant: proof for proof in result.proofs if proof.attack == name}
    if Counter(proof.plant for proof in result.proofs if proof.attack == name) != wanted:
        return f"{name} was not tried on each of its planted leaks once."
    for plant in plants:
        if not is_enough(found[plant]):
            return (
                f"{name} noticed the planted leak '{plant}' {found[plant].noticed} times in "
                f"{found[plant].repetitions}; {LEAST_NOTICED} in {REPETITIONS} are needed."
            )
    if not is_quiet(found[NOISE]):
        return (
            f"{name} took noise for a leak {found[NOISE].noticed} times in "
            f"{found[NOISE].repetitions}; at most {MOST_ALARMS} in {REPETITIONS} may be."
        )
    return None


def is_enough(proof: Proof) -> bool:
    return proof.repetitions == REPETITIONS and LEAST_NOTICED <= proof.noticed <= REPETITIONS


def is_quiet(proof: Proof) -> bool:
    return proof.repetitions == REPETITIONS and 0 <= proof.noticed <= MOST_ALARMS


def uncovered(result: SelfTestResult) -> Iterator[str]:
    coverage = result.coverage
    if coverage is None:
        why = result.failed.get(COVERAGE, "not tried")
        yield f"Whether this policy refuses bad releases of this table is not known ({why})."
        return
    if not coverage.bad or coverage.records < 1 or coverage.noise.plant != NOISE:
        yield "Nothing was tried on this table."
    for each in coverage.bad:
        if not each.refused_by:
            yield (
                f"This policy would let {WORDS.get(each.plant, each.plant)} pass: no limit on an "
                "attack refuses them. Tighten a limit, or let the attacker know more."
            )
    for name in coverage.noise.refused_by:
        yield f"{name} refuses even noise that tells nothing, so its limit judges something else."


def covered_words(coverage: Coverage | None) -> str:
    if coverage is None:
        return ""
    plants = ", ".join(f"{each.plant} (by {', '.join(each.refused_by)})" for each in coverage.bad)
    weak = ", ".join(coverage.powerless)
    without = f" Without power on this table: {weak}." if weak else ""
    return f"Bad releases of a sample of the records are refused: {plants}; noise is not.{without}"
