"""Which method to use today: sentences from the map of methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

from ppdm_core.attacks import ATTACKS
from studies.reproduction.draw_map import choose_common, list_unique
from studies.reproduction.method_map import (
    COMMON_SHARE,
    MAX_RECORDS,
    NEAR_SHARE,
    SLOWEST_ATTACK,
    Audited,
    is_near,
)

LOW_RISK, HIGH_RISK = 0.1, 0.5
MIN_TABLE_SHARE = 0.5  # on which a method must be near the common utility to be ranked
LEFT_OUT = (
    "Randomized response takes categories only, which these tables do not have, and a pipeline is "
    "a method for numbers beside it: both are left out."
)


def describe_map(audits: Sequence[Audited]) -> Iterator[str]:
    """Yield ten sentences at most; figures are those of the pictures.

    Methods are compared only where they are near the common utility.
    """
    common = choose_common(audits)
    tables = list_unique([table for table, _ in common])
    methods = list_unique([method for _, method in common])
    minutes = sum(each.seconds for each in audits) / 60
    yield (
        f"{len(methods)} methods were attacked on {len(tables)} numeric tables, {join(tables)}, "
        f"with at most {MAX_RECORDS} records each, one draw and quick audits; the {len(audits)} "
        f"audits took {minutes:.0f} minutes of processor time. {LEFT_OUT}"
    )
    reached = {key: each for key, each in common.items() if is_near(each)}
    missed = Counter(each.method for each in common.values() if not is_near(each))
    yield (
        f"Settings were chosen so that the best classifier keeps {COMMON_SHARE:.0%} of what the "
        f"original adds to the largest class; {len(reached)} of {len(common)} are within "
        f"{100 * NEAR_SHARE:.0f} points of that, and only these are compared"
        + (
            f"; no setting of ours comes so near for {count_tables(missed, tables)}."
            if missed
            else "."
        )
    )
    ranked = rank_methods(reached, tables)
    if not ranked:
        yield "No method comes near that utility, so that none can be recommended."
        return
    yield describe_ranks(ranked)
    best = Counter(find_best(reached, table) for table in tables if find_best(reached, table))
    yield f"The least risk has {count_tables(best, tables)}."
    cases = list(reached.values())
    safe = [each for each in cases if each.worst_risk <= LOW_RISK]
    yield (
        f"In {len(safe)} of {len(cases)} cases no attack is more than "
        f"{100 * LOW_RISK:.0f} points above its baseline"
        + (f": {join([f'{each.method} on {each.table}' for each in safe])}." if safe else ".")
    )
    lost = Counter(each.method for each in cases if each.worst_risk >= HIGH_RISK)
    yield (
        f"An attack is at least {100 * HIGH_RISK:.0f} points above its baseline for "
        f"{count_tables(lost, tables)}."
        if lost
        else f"No attack is {100 * HIGH_RISK:.0f} points above its baseline."
    )
    strongest = Counter(each.worst_attack for each in cases).most_common(3)
    yield (
        "The strongest attack is most often "
        + join([f"{name} ({count} of {len(cases)})" for name, count in strongest])
        + "."
    )
    yield describe_goals(cases)
    yield (
        f"Of the settings with the least and the most noise, which {SLOWEST_ATTACK} did not "
        f"attack, {describe_ends(audits)}."
    )
    yield (
        f"So, of these methods, use {ranked[0][0]} today, with the noise that your own limits "
        "need, and expect to pay for it with accuracy; one draw of small tables does not replace "
        "the audit of your own table."
    )


def rank_methods(
    reached: Mapping[tuple[str, str], Audited], tables: Sequence[str]
) -> list[tuple[str, float, int]]:
    """Return methods with their mean risk and number of tables, the least risk first.

    A method is ranked if it is near the common utility on at least half of the tables.
    """
    risks: dict[str, list[float]] = {}
    for (_, method), each in reached.items():
        risks.setdefault(method, []).append(each.worst_risk)
    ranked = [
        (name, mean(each), len(each))
        for name, each in risks.items()
        if len(each) >= MIN_TABLE_SHARE * len(tables)
    ]
    return sorted(ranked, key=lambda each: each[1])


def describe_ranks(ranked: Sequence[tuple[str, float, int]]) -> str:
    """Return the risks of all ranked methods."""
    (first, risk, count), *others = ranked
    rest = join([f"{name} {100 * each:.0f} points ({n})" for name, each, n in others])
    return (
        f"Of methods that are near that utility on at least half of the tables, {first} has the "
        f"least risk: its strongest attack is {100 * risk:.0f} points above its baseline, the mean "
        f"of {count} tables" + (f"; {rest}." if rest else ".")
    )


def find_best(reached: Mapping[tuple[str, str], Audited], table: str) -> str:
    """Return the method with the least risk on a table, or nothing."""
    own = [each for (name, _), each in reached.items() if name == table]
    return min(own, key=lambda each: each.worst_risk).method if own else ""


def describe_goals(cases: Sequence[Audited]) -> str:
    """Return how often attacks with another goal remain where reconstruction is prevented."""
    prevented, remaining = 0, Counter[str]()
    for each in cases:
        excess = {name: each.compute_excess(name) for name in each.risks}
        if max((v for k, v in excess.items() if is_reconstruction(k)), default=0.0) > LOW_RISK:
            continue
        prevented += 1
        others = {k: v for k, v in excess.items() if not is_reconstruction(k) and v > LOW_RISK}
        if others:
            remaining[max(others, key=lambda name: others[name])] += 1
    count = remaining.total()
    named = [f"{name} ({each})" for name, each in remaining.most_common(2)]
    return (
        f"In {prevented} of {len(cases)} cases no reconstruction is more than "
        f"{100 * LOW_RISK:.0f} points above its baseline; in {count} of these an attack with "
        "another goal is" + (f", the strongest being {join(named)}." if named else ".")
    )


def is_reconstruction(attack: str) -> bool:
    """Return whether an attack estimates values."""
    return ATTACKS[attack].goal == "reconstruct"


def count_tables(methods: Counter[str], tables: Sequence[str]) -> str:
    """Return methods with their numbers of tables."""
    return join(
        [f"{name} on {count} of {len(tables)} tables" for name, count in methods.most_common()]
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
