"""Which method to use today: sentences from the map of methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean

from studies.reproduction.draw_map import choose_common, list_unique
from studies.reproduction.method_map import (
    COMMON_SHARE,
    MAX_RECORDS,
    SLOWEST_ATTACK,
    Audited,
)

LOW_RISK, HIGH_RISK = 0.1, 0.5
NEAR_SHARE = 0.1  # of the common utility


def describe_map(audits: Sequence[Audited]) -> Iterator[str]:
    """Yield ten sentences at most; figures are those of the pictures."""
    common = choose_common(audits)
    tables = list_unique([table for table, _ in common])
    methods = list_unique([method for _, method in common])
    minutes = sum(each.seconds for each in audits) / 60
    yield (
        f"{len(methods)} methods were attacked on {join(tables)}, with at most {MAX_RECORDS} "
        f"records each, one draw and quick audits; the {len(audits)} audits took "
        f"{minutes:.0f} minutes of processor time."
    )
    reached = [each for each in common.values() if abs(each.share - COMMON_SHARE) <= NEAR_SHARE]
    yield (
        f"Settings were chosen so that the best classifier keeps {COMMON_SHARE:.0%} of what the "
        f"original adds to the largest class; {len(reached)} of {len(common)} are within "
        f"{100 * NEAR_SHARE:.0f} points of that, and the others have no nearer setting."
    )
    risk = {
        method: mean(common[table, method].worst_risk for table in tables) for method in methods
    }
    ranked = sorted(methods, key=lambda method: risk[method])
    first, second, last = ranked[0], ranked[1], ranked[-1]
    yield (
        f"At that utility {first} has the least risk: its strongest attack is "
        f"{100 * risk[first]:.0f} points above its baseline on average, that of {second} "
        f"{100 * risk[second]:.0f} points, and that of {last} {100 * risk[last]:.0f}."
    )
    best = Counter(min(methods, key=lambda m: common[t, m].worst_risk) for t in tables)
    yield (
        "The least risk has "
        + join(
            [f"{method} on {count} of {len(tables)} tables" for method, count in best.most_common()]
        )
        + "."
    )
    safe = [each for each in common.values() if each.worst_risk <= LOW_RISK]
    yield (
        f"In {len(safe)} of {len(common)} cases no attack is more than "
        f"{100 * LOW_RISK:.0f} points above its baseline"
        + (f": {join([f'{each.method} on {each.table}' for each in safe])}." if safe else ".")
    )
    lost = Counter(each.method for each in common.values() if each.worst_risk >= HIGH_RISK)
    yield (
        (
            f"An attack is at least {100 * HIGH_RISK:.0f} points above its baseline for "
            + (join([f"{m} on {count} of {len(tables)} tables" for m, count in lost.most_common()]))
            + "."
        )
        if lost
        else f"No attack is {100 * HIGH_RISK:.0f} points above its baseline."
    )
    strongest = Counter(each.worst_attack for each in common.values()).most_common(3)
    yield (
        "The strongest attack is most often "
        + join([f"{name} ({count} of {len(common)})" for name, count in strongest])
        + "."
    )
    yield (
        "Membership and linkage remain where reconstruction is prevented, so that a method should "
        "be judged by its strongest attack and not by the error of one reconstruction."
    )
    yield (
        f"Of the settings with the least and the most noise, which {SLOWEST_ATTACK} did not "
        f"attack, {describe_ends(audits)}."
    )
    yield (
        f"So, of these methods, use {first} today, with the noise that your own limits need, and "
        "expect to pay for it with accuracy; one draw of small tables does not replace the audit "
        "of your own table."
    )


def describe_ends(audits: Sequence[Audited]) -> str:
    """Return how many settings are both useful and hard to attack."""
    ends = [each for each in audits if each.attacks == "most"]
    useful = [each for each in ends if each.share >= COMMON_SHARE - NEAR_SHARE]
    good = [each for each in useful if each.worst_risk <= LOW_RISK]
    return (
        f"{len(useful)} of {len(ends)} keep that utility, and {len(good)} of these stay within "
        f"{100 * LOW_RISK:.0f} points of all baselines"
    )


def join(words: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
