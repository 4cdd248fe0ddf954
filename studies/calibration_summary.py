"""Tables of the results of studies/audit_calibration.py, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from studies.calibration_results import KINDS, Case, Result
from tests.support.audit_tables import TABLES
from tests.support.unsafe_releases import SAFE, UNSAFE

VERDICTS = ("PASS", "REVIEW", "FAIL", "ERROR")
MAX_NAMED_CHECKS = 4
SIZES = {
    "500 records or more": (500, 10**9),
    "300 to 499 records": (300, 500),
    "fewer than 300 records": (0, 300),
}
Key = Callable[[Result], str]


def summarize(results: Sequence[Result]) -> str:
    """Return all tables."""
    safe = [each for each in results if each.case.kind in SAFE]
    unsafe = [each for each in results if each.case.kind in UNSAFE]
    return "\n".join([*summarize_safe(safe), *summarize_unsafe(unsafe, safe)])


def summarize_safe(results: Sequence[Result]) -> Iterator[str]:
    """Yield how many safe releases pass: by size, and for shared and generated tables apart."""
    if not results:
        return
    yield f"## Safe releases ({len(results)} audits)\n"
    yield "### By records and known pairs\n"
    yield from tabulate(results, "records, pairs", get_size, "checks that do not pass")
    groups: dict[str, Key] = {
        "kind": lambda one: one.case.kind,
        "table": lambda one: one.case.table,
    }
    for size, (low, high) in SIZES.items():
        for origin in ("shared", "generated"):
            some = [
                one
                for one in results
                if TABLES[one.case.table].origin == origin and low <= one.case.n < high
            ]
            for name, key in groups.items() if some else ():
                yield f"### {size}, {origin} tables, by {name}\n"
                yield from tabulate(some, name, key, "checks that do not pass")


def get_size(result: Result) -> str:
    return f"{result.case.n}, {result.case.known}"


def fails_as_safe(result: Result, safe: Iterable[Result]) -> bool:
    """Return whether each check that fails also fails safe releases of the table and size."""
    same = [
        one for one in safe if (one.case.table, one.case.n) == (result.case.table, result.case.n)
    ]
    return find_failed(result) <= {check for one in same for check in find_failed(one)}


def find_failed(result: Result) -> set[str]:
    return {check for check, outcome in result.checks.items() if outcome == "FAIL"}


def summarize_unsafe(results: Sequence[Result], safe: Sequence[Result]) -> Iterator[str]:
    """Yield how many unsafe releases fail, of those that are proved to be unsafe."""
    if not results:
        return
    proved = [one for one in results if one.is_proved]
    yield f"## Unsafe releases ({len(proved)} audits)\n"
    yield f"Not counted: {len(results) - len(proved)} releases whose proof does not hold.\n"
    blind = [one for one in proved if one.verdict == "FAIL" and fails_as_safe(one, safe)]
    yield f"{len(blind)} fail only by checks that also fail safe releases of the same table.\n"
    groups: dict[str, Key] = {
        "records and known pairs": get_size,
        "family": lambda one: KINDS[one.case.kind].family,
        "table": lambda one: one.case.table,
        "kind": lambda one: f"{KINDS[one.case.kind].family}: {one.case.kind}",
    }
    for name, key in groups.items():
        yield f"### By {name}\n"
        yield from tabulate(proved, name, key, "checks that fail", "FAIL")
    yield from list_kinds([one for one in proved if one.verdict == "PASS"], "pass")
    yield from list_kinds(
        [one for one in proved if one.verdict == "REVIEW" or one in blind],
        "do not pass, and are not distinguished from safe releases",
    )


def list_kinds(results: Iterable[Result], title: str) -> Iterator[str]:
    """Yield each kind with its tables."""
    tables: dict[str, list[str]] = {}
    for one in results:
        tables.setdefault(one.case.kind, []).append(f"{one.case.table} ({one.case.n})")
    yield f"### Kinds that somewhere {title}: {len(tables)}\n"
    yield from (f"* {kind}: {', '.join(places)}" for kind, places in tables.items())
    yield ""


def tabulate(
    results: Sequence[Result], name: str, key: Key, title: str, outcome: str | None = None
) -> Iterator[str]:
    """Yield a table: verdicts of each group, and the most frequent checks."""
    groups: dict[str, list[Result]] = {}
    for one in results:
        groups.setdefault(key(one), []).append(one)
    yield f"| {name} | audits | {' | '.join(VERDICTS)} | PASS share | {title} |"
    yield f"| --- |{' ---: |' * (len(VERDICTS) + 2)} --- |"
    for group, some in {**groups, "all": list(results)}.items():
        counts = Counter(one.verdict for one in some)
        cells = " | ".join(str(counts[verdict]) for verdict in VERDICTS)
        share = f"{counts['PASS'] / len(some):.0%}"
        yield f"| {group} | {len(some)} | {cells} | {share} | {name_checks(some, outcome)} |"
    yield ""


def name_checks(results: Iterable[Result], outcome: str | None) -> str:
    """Return the checks that most often did not pass, or had a certain outcome."""
    counts = Counter(
        check
        for one in results
        for check, found in one.checks.items()
        if outcome is None or found == outcome
    )
    return ", ".join(f"{check} {count}" for check, count in counts.most_common(MAX_NAMED_CHECKS))


def compare_results(before: Sequence[Result], after: Sequence[Result]) -> str:
    """Return which verdicts have changed in the audits that both files hold."""
    old = {one.case: one for one in before}
    pairs = [(old[one.case], one) for one in after if one.case in old]
    lines = [f"{len(pairs)} audits are in both files.\n"]
    for name, kinds, good in (("safe", SAFE, "PASS"), ("unsafe", UNSAFE, "FAIL")):
        some = [
            (a, b) for a, b in pairs if a.case.kind in kinds and (good == "PASS" or b.is_proved)
        ]
        if not some:
            continue
        lines += [f"## {name.capitalize()} releases\n", "| before | after | audits |"]
        lines.append("| --- | --- | ---: |")
        for (a, b), count in sorted(Counter((a.verdict, b.verdict) for a, b in some).items()):
            lines.append(f"| {a} | {b} | {count} |")
        worse = [(a, b) for a, b in some if a.verdict == good != b.verdict]
        lines.append(f"\nWorse than before: {len(worse)}.\n")
        lines += [f"* {format_case(b.case)}: {b.verdict} ({join(b)})" for _, b in worse]
    seconds = [sum(one.seconds for one in side) for side in zip(*pairs, strict=True)]
    if pairs:
        lines.append(f"\nSeconds before and after: {seconds[0]:,.0f} and {seconds[1]:,.0f}.")
    return "\n".join(lines)


def format_case(case: Case) -> str:
    return f"{case.kind}, {case.table}, {case.n} records, {case.known} known, seed {case.seed}"


def join(result: Result) -> str:
    return ", ".join(result.checks) or "no check"
