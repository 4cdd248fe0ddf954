"""The gate on measured scores."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ppdm_core.gates._gate import Gate, GateInput
from ppdm_core.metrics import METRICS, Metric
from ppdm_core.model.advice import MORE_RECORDS, Advice
from ppdm_core.model.policy import AMPLIFICATION, LABEL, LEDGER, Limit
from ppdm_core.model.score import Score, is_sound
from ppdm_core.model.verdict import Finding, Outcome

NO_ADVICE = Advice()
ROUNDING_MARGIN = 1e-9  # of the difference of a limit and a baseline


class ScoreLimits(Gate):
    """Limits on measured scores, judged by both ends of their interval.

    PASS when even the unfavourable end keeps the limit, FAIL when even the favourable one breaks
    it, else REVIEW, because too few records were measured; also REVIEW in the band that the limit
    leaves to reviewers, and if a limit on a privacy score allows more over the baseline than the
    ceiling of its metric. A limit that no release of the table can break needs a reviewer, too,
    unless it holds because the value follows from the population. A score of too few records to
    be certified can fail, and does not prevent a PASS. Limits are on the excess over the baseline
    (for privacy scores where more is better: on the shortfall below it) unless ``absolute``.
    """

    name = "score_limits"
    judges_settings = True

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        scores = gate_input.report.scores
        for score in scores:
            if not is_sound(score):
                yield Finding(score.name, "FAIL", f"{score.name} could not be measured.")
        for key, limit in gate_input.policy.limits.items():
            if key.startswith((AMPLIFICATION, LEDGER)):
                continue
            if all(score.name != key for score in scores):
                yield Finding(key, "FAIL", f"{key} has a limit but was not measured.")
            for score in scores:
                if score.name == key and is_sound(score):
                    yield judge(score, limit, gate_input.advice)


def judge(score: Score, limit: Limit, advice: Advice = NO_ADVICE) -> Finding:
    """Return the finding for a sound score; NaN would be neither within a limit nor beyond it."""
    outcome, allowed = judge_outcome(score, limit), format_limit(score, limit)
    observed = f"{score.value:.3g} [{score.low:.3g}, {score.high:.3g}]"
    if outcome == "PASS":
        why = score.sentence
    elif outcome == "FAIL":
        why = f"{score.sentence} Limit: {allowed} ({limit.origin})."
    elif is_weak(score, limit):
        why = (
            f"{score.sentence} The limit ({allowed}; {limit.origin}) is weak: a "
            f"reviewer decides where a limit allows more than {format_ceiling(score)}."
        )
    elif is_empty(score, limit):
        why = (
            f"{score.sentence} The limit ({allowed}) cannot be broken here, because the baseline "
            f"is {score.baseline:.3g} already; use absolute = true or another epsilon."
        )
    elif keeps_surely(score, limit, limit.value):
        why = (
            f"{score.sentence} The limit ({allowed}) holds, but from {limit.review:.3g} on a "
            f"reviewer decides ({limit.origin})."
        )
    else:
        why = (
            f"{score.sentence} The {score.n} records measured are too few to tell whether the "
            f"limit ({allowed}) holds; the interval is {score.low:.3g} to {score.high:.3g}."
            f"{explain_size(score, limit)}"
        )
    remedy = "" if outcome == "PASS" else explain_remedy(score, limit, advice)
    return Finding(score.name, outcome, why, observed, allowed, remedy)


def explain_remedy(score: Score, limit: Limit, advice: Advice) -> str:
    """Return the value that a PASS needs, and what helps to reach it."""
    if is_unbreakable(score, limit):
        return ""  # the finding says what to change in the limit
    if is_weak(score, limit):
        return f"For a PASS, the limit must allow at most {format_ceiling(score)}."
    line = limit.value if limit.review is None else limit.review
    side = "at most" if score.better == "down" else "at least"
    end = "upper" if score.better == "down" else "lower"
    needed = f"For a PASS, the {end} end of the interval must be {side} "
    needed += f"{compute_limit(score, limit, line):.3g}; "
    needed += f"it is {score.high if score.better == 'down' else score.low:.3g}."
    return f"{needed} {advise(score, limit, line, advice)}"


def advise(score: Score, limit: Limit, line: float, advice: Advice) -> str:
    """Return what moves a score to its limit."""
    if score.kind != "privacy":
        return advice.describe_more_useful()
    if score.name.split(".")[0] == LABEL:  # it is released as it is
        return "What helps: merge classes of the label, release more records, or release no label."
    records = count_needed_records(score, limit, line)
    if records is None:
        return advice.describe_more_private()
    return advice.describe_more_private(f"{MORE_RECORDS} (about {records:,} with this value)")


def count_needed_records(score: Score, limit: Limit, line: float) -> int | None:
    """Return how many records certify the measured value, None if it is beyond the limit.

    The width of an interval falls with the square root of the number of records, or faster.
    """
    shift = 0.0 if limit.absolute else score.baseline
    value = score.value - shift if score.better == "down" else shift - score.value
    room = orient_limit(score, limit, line) - value
    width = compute_distances(score, limit)[1] - value
    if not 0 < room < width:
        return None
    needed = score.n * (width / room) ** 2
    return int(round(needed, 1 - math.floor(math.log10(needed))))


def explain_size(score: Score, limit: Limit) -> str:
    """Return how many records a PASS needs, if the interval alone is wider than the limit.

    The width falls with the square root of the number of records, or faster.
    """
    width = score.high - score.value if score.better == "down" else score.value - score.low
    if limit.absolute or score.kind != "privacy" or not 0 < limit.value < width:
        return ""
    needed = score.n * (width / limit.value) ** 2
    digits = 1 - math.floor(math.log10(needed))
    return (
        " So few records cannot show it, even for an attack that gains nothing: about "
        f"{round(needed, digits):,.0f} are needed."
    )


def judge_outcome(score: Score, limit: Limit) -> Outcome:
    """Return the outcome of a sound score against a limit."""
    favourable, _ = compute_distances(score, limit)
    line = orient_limit(score, limit, limit.value)
    if not favourable <= line:  # a limit that is NaN keeps nothing
        return "FAIL"
    lines = [line for line in (limit.value, limit.review) if line is not None]
    is_kept = not score.is_certifiable or all(keeps_surely(score, limit, line) for line in lines)
    is_meaningful = not (is_weak(score, limit) or is_empty(score, limit))
    return "PASS" if is_kept and is_meaningful else "REVIEW"


def keeps_surely(score: Score, limit: Limit, line: float) -> bool:
    """Return whether even the unfavourable end, or the worst possible value, keeps the limit."""
    is_kept = compute_distances(score, limit)[1] <= orient_limit(score, limit, line)
    return is_kept or is_unbreakable(score, limit, line)


def compute_distances(score: Score, limit: Limit) -> tuple[float, float]:
    """Return the interval ends that must stay at or below a limit: favourable, unfavourable."""
    shift = 0.0 if limit.absolute else score.baseline
    if score.better == "down":
        return score.low - shift, score.high - shift
    return shift - score.high, shift - score.low


def orient_limit(score: Score | Metric, limit: Limit, value: float) -> float:
    """Return the limit in the orientation of ``compute_distances``: at or below is kept.

    For utility where more is better the limit is a value to reach, so its sign changes; for
    privacy it is a tolerated shortfall.
    """
    is_shortfall = score.kind == "privacy" and not limit.absolute
    return value if score.better == "down" or is_shortfall else -value


def compute_limit(score: Score, limit: Limit, value: float | None = None) -> float:
    """Return the largest or smallest score that keeps its limit, or another value of it."""
    line = orient_limit(score, limit, limit.value if value is None else value)
    shift = 0.0 if limit.absolute else score.baseline
    return line + shift if score.better == "down" else shift - line


def is_weak(score: Score, limit: Limit) -> bool:
    """Return whether a privacy score passes far above the baseline, so that a reviewer decides.

    What counts is the line up to which a score passes: the start of a review band, if there is one.
    """
    if score.kind != "privacy":
        return False
    line = limit.value if limit.review is None else limit.review
    if limit.absolute:
        line = line - score.baseline if score.better == "down" else score.baseline - line
    return not line <= compute_ceiling(score) + ROUNDING_MARGIN  # NaN is weak


def compute_ceiling(score: Score) -> float:
    """Return the largest excess over the baseline, or shortfall, that needs no reviewer."""
    ceiling = find_metric(score).ceiling
    return ceiling if score.better == "down" else ceiling * score.baseline


def find_metric(score: Score) -> Metric:
    """Return the metric of a score."""
    return METRICS[score.name.split(".")[-1]]


def is_unbreakable(score: Score, limit: Limit, line: float | None = None) -> bool:
    """Return whether the baseline is so near the worst value that nothing can break the limit."""
    worst = find_metric(score).bounds[1 if score.better == "down" else 0]
    if limit.absolute or score.kind != "privacy" or not math.isfinite(worst):
        return False
    return (limit.value if line is None else line) >= abs(worst - score.baseline)


def is_empty(score: Score, limit: Limit) -> bool:
    """Return whether a limit promises nothing because of how an attacker is set up.

    What persons outside the release show is no breach: where they show nearly everything, the
    release cannot add more than the limit allows, and the limit is kept.
    """
    return is_unbreakable(score, limit) and not find_metric(score).baseline_is_population


def format_ceiling(score: Score) -> str:
    """Return the ceiling of a limit in words."""
    side = "above" if score.better == "down" else "below"
    return f"{compute_ceiling(score):.3g} {side} the baseline ({score.baseline:.3g})"


def format_limit(judged: Score | Metric, limit: Limit) -> str:
    """Return a limit in words."""
    if limit.absolute:
        return f"{'at most' if judged.better == 'down' else 'at least'} {limit.value:.3g}"
    if judged.better == "down":
        return f"at most {limit.value:.3g} above the baseline"
    if judged.kind == "privacy":
        return f"at most {limit.value:.3g} below the baseline"
    return f"at least {limit.value:.3g} above the baseline"
