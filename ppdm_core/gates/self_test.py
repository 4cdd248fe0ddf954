"""The gate on the self-test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ppdm_core.audit.self_test.broken_releases import (
    CLEAR_COLUMNS,
    IDENTITY,
    NEARLY_IDENTICAL,
    NOISE_HOLE,
    REARRANGED,
    SLIGHT_NOISE,
)
from ppdm_core.audit.self_test.matrix import (
    MAX_ALARMS,
    REPETITIONS,
    count_needed,
    find_leaks,
    list_relied_on,
)
from ppdm_core.gates._gate import Gate, GateInput
from ppdm_core.model.advice import Advice
from ppdm_core.model.self_test import (
    NOISE,
    LeakTest,
    PolicyCheck,
    ReleaseTest,
    SelfTestResult,
)
from ppdm_core.model.verdict import Finding

ATTACKS_WORK, POLICY_COVERS = "self_test.attacks", "self_test.policy"
REPAIR = (
    "What helps: ppdm self-test shows which attack does not work with the installed libraries; "
    "require and limit other attacks, or repair the installation."
)
POLICY_CHECK = "policy_check"  # its key among what failed
DESCRIPTIONS = {
    IDENTITY: "the records as they are (in the columns that this method releases)",
    SLIGHT_NOISE: "the records with noise of a thousandth of the range",
    NEARLY_IDENTICAL: "the records with noise of at most a hundredth of the range",
    "rotation": "the records rotated",
    CLEAR_COLUMNS: "some columns as they are",
    NOISE_HOLE: "the records with noise that cancels in one combination of columns",
    REARRANGED: "the values of each record in a random order",
    "verbatim rows": "a few records as they are among noise",
}


class SelfTest(Gate):
    """The audit tested itself: its attacks work, and this policy refuses bad releases.

    Every attack that the verdict rests on noticed the leaks planted for it in at least the share
    of 20 trials that it declares, and took noise for a leak in at most 3. On a sample of the real
    table, each bad release that the method could turn into is refused through a limit, and noise
    is not.
    """

    name = "self_test"

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        result = gate_input.report.self_test
        why = explain_unusable(result, gate_input)
        if result is None or why is not None:
            yield Finding(self.name, "FAIL", f"{why} So the release is not audited: run it again.")
            return
        names = list_relied_on(gate_input.policy)
        weak = list(filter(None, (explain_unproven(result, name) for name in names)))
        works = f"Each of the {len(names)} checks that the verdict rests on noticed planted leaks."
        yield make_finding(ATTACKS_WORK, weak, works, REPAIR)
        gaps = list(list_policy_gaps(result))
        good = describe_policy_check(result.policy_check)
        yield make_finding(POLICY_COVERS, gaps, good, explain_stricter(result, gate_input.advice))


def make_finding(check: str, complaints: list[str], good: str, remedy: str) -> Finding:
    """Return a PASS, or a FAIL with all complaints and the remedy."""
    if not complaints:
        return Finding(check, "PASS", good)
    why = f"{' '.join(complaints)} So the release is not audited."
    return Finding(check, "FAIL", why, remedy=remedy)


def explain_stricter(result: SelfTestResult, advice: Advice) -> str:
    """Return what helps a release to keep the stricter limits that refuse bad releases."""
    bad = result.policy_check.bad if result.policy_check else ()
    if not any(each.refusing_limits for each in bad if not each.refused_by):
        return ""
    return f"The release itself must keep a stricter limit, too. {advice.describe_more_private()}"


def explain_unusable(result: SelfTestResult | None, gate_input: GateInput) -> str | None:
    """Return why the result does not count for this release, None if it does."""
    if result is None:
        return "The audit did not test itself."
    if not gate_input.code_version or result.code_version != gate_input.code_version:
        return "The audit tested itself with other code."
    if result.policy_digest != gate_input.policy.digest:
        return "The audit tested itself with another policy."
    return None


def explain_unproven(result: SelfTestResult, name: str) -> str | None:
    """Return why the scores of this attack do not count, None if they do."""
    if name in result.failed:
        return f"{name} failed on a planted leak ({result.failed[name]})."
    leaks = find_leaks(name)
    if not leaks:
        return f"No leak is planted for {name}, so nothing shows that it works."
    tests = [test for test in result.leak_tests if test.attack == name]
    if Counter(test.leak for test in tests) != Counter([*leaks, NOISE]):
        return f"{name} was not tried on each of its planted leaks once."
    found = {test.leak: test for test in tests}
    for leak, share in leaks.items():
        if not is_noticed_enough(found[leak], share):
            return (
                f"{name} noticed the planted leak '{leak}' {found[leak].noticed} times in "
                f"{found[leak].repetitions}; {count_needed(share)} in {REPETITIONS} are needed."
            )
    if not is_quiet(found[NOISE]):
        return (
            f"{name} took noise for a leak {found[NOISE].noticed} times in "
            f"{found[NOISE].repetitions}; at most {MAX_ALARMS} in {REPETITIONS} are allowed."
        )
    return None


def is_noticed_enough(test: LeakTest, share: float) -> bool:
    """Return whether the leak was noticed in enough of all trials."""
    is_complete = test.repetitions == REPETITIONS
    return is_complete and count_needed(share) <= test.noticed <= REPETITIONS


def is_quiet(test: LeakTest) -> bool:
    """Return whether noise was rarely taken for a leak."""
    return test.repetitions == REPETITIONS and 0 <= test.noticed <= MAX_ALARMS


def list_policy_gaps(result: SelfTestResult) -> Iterator[str]:
    """Yield what is wrong with the policy, one sentence each."""
    check = result.policy_check
    if check is None:
        why = result.failed.get(POLICY_CHECK, "not tried")
        yield f"Whether this policy refuses bad releases of this table is not known ({why})."
        return
    if not check.bad or check.records < 1 or check.noise.name != NOISE:
        yield "Nothing was tried on this table."
    for each in check.bad:
        if not each.refused_by:
            yield (
                f"This policy would let {DESCRIPTIONS.get(each.name, each.name)} pass: no limit "
                f"on an attack refuses them. {explain_remedy(each)}"
            )
    for name in check.noise.refused_by:
        yield (
            f"{name} refuses even independent noise, so its limit judges something else: raise it."
        )


def explain_remedy(test: ReleaseTest) -> str:
    """Return which limit would refuse a bad release, with what was measured of it."""
    if test.refusing_limits:
        name, line = max(test.refusing_limits.items(), key=lambda item: item[1])
        return (
            f"{name} of that bad release is {test.observed[name]:.3g}; a limit of {line:g} would "
            "refuse it. Or let the attacker know more in [attacker]."
        )
    figures = ", ".join(f"{name} {value:.3g}" for name, value in test.observed.items())
    measured = f" (measured of it: {figures})" if figures else ""
    return (
        f"No limit on these attacks can{measured}. What helps: let the attacker know more in "
        "[attacker], limit other attacks, or release more records or other columns."
    )


def describe_policy_check(check: PolicyCheck | None) -> str:
    """Return a sentence about the bad releases that the policy refuses."""
    if check is None:
        return ""
    names = ", ".join(f"{each.name} (by {', '.join(each.refused_by)})" for each in check.bad)
    weak = ", ".join(check.powerless)
    without = f" Without power on this table: {weak}." if weak else ""
    return (
        f"It refuses bad releases of a sample of the records: {names}. It does not refuse noise, "
        f"which reveals nothing.{without}"
    )
