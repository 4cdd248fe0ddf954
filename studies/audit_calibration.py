"""Audit many safe and unsafe releases by the default policy: how many pass, and how many fail.

    python -m studies.audit_calibration out.jsonl --group unsafe --tables waveform incomes
    python -m studies.audit_calibration out.jsonl --group safe --sizes 300 500 --seeds 10 --evenly
    python -m studies.audit_calibration out.jsonl --summary           # print tables of the results
    python -m studies.audit_calibration out.jsonl --compare old.jsonl # print what has changed

Each audit adds one line to the file. Audits that it holds already are skipped, so that a study can
be stopped and started again. An unsafe release counts where its proof holds: an attacker of a
stated model reaches twice the limit of the policy (tests/support/release_kinds/proofs.py).
PPDM_DATA names the folder of the shared tables.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, astuple
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from ppdm.policies import SYNTHETIC_POLICY, load_policy
from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.runner import AuditResult, run_audit
from ppdm_core.gates.score_limits import judge
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import PpdmError
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.score import AuditReport
from ppdm_core.two_tables.judge import judge_tables
from ppdm_core.two_tables.runner import TableAuditor, add_comparison, prepare_audit
from studies.calibration_results import KINDS, Case, Result, read_results
from studies.calibration_summary import compare_results, summarize
from tests.support.audit_tables import TABLES, Sample
from tests.support.release_kinds.kinds import Kind, make_rng
from tests.support.unsafe_releases import SAFE, UNSAFE

LABEL = "class"
KIND_STEP = 7  # from the kind of one seed to that of the next


def list_cases(
    tables: Iterable[str],
    kinds: Iterable[str],
    sizes: Iterable[int],
    seeds: int,
    known: Iterable[int],
) -> list[Case]:
    """Return all combinations for which a table has enough records."""
    return [
        Case(table, kind, n, seed, count)
        for seed in range(seeds)
        for n in sizes
        for count in known
        for table in tables
        if n <= TABLES[table].max_records
        for kind in kinds
    ]


def spread_kinds(cases: Sequence[Case]) -> list[Case]:
    """Return one case for each table, size, seed and attacker; kinds are taken in turn.

    Each table meets another kind with every seed, and kinds are about equally frequent.
    """
    groups: dict[tuple[int, int, int], dict[str, list[Case]]] = {}
    for case in cases:
        groups.setdefault((case.seed, case.n, case.known), {}).setdefault(case.table, []).append(
            case
        )
    return [
        some[(place + KIND_STEP * seed) % len(some)]
        for (seed, _, _), tables in groups.items()
        for place, some in enumerate(tables.values())
    ]


def audit_case(case: Case) -> Result:
    """Make a release, audit it as `ppdm audit` does, and run the proof of an unsafe kind."""
    kind, sample = KINDS[case.kind], TABLES[case.table].draw(case.n, case.seed)
    Y = kind.release(sample.X, make_rng(*astuple(case)[:-1]), sample.label)
    proof = None
    if kind.proof is not None:
        evidence = kind.prove(sample.X, Y, sample.others, make_rng("proof", *astuple(case)[:-1]))
        proof = (evidence.value, evidence.baseline, evidence.limit)
    original, released, control, label = make_frames(kind, sample, Y)
    policy = load_policy(None if len(Y) == len(sample.X) else SYNTHETIC_POLICY)
    start = time.perf_counter()
    try:
        prepared = prepare_audit(
            original,
            released,
            control=control,
            known_records=case.known,
            aligned=kind.aligned,
            label=label,
            policy=policy,
        )
    except PpdmError as error:
        return Result(case, "ERROR", {type(error).__name__: "ERROR"}, proof)
    outcome, findings = judge_tables(run_judged_audits(*prepared), policy)
    checks = {each.check: each.outcome for each in findings if each.outcome != "PASS"}
    return Result(case, outcome, checks, proof, round(time.perf_counter() - start, 2))


def run_judged_audits(
    auditor: TableAuditor, names: Sequence[str], not_run: dict[str, Skip]
) -> AuditReport:
    """Run the audits that the verdict depends on, until one fails: the verdict is then FAIL."""
    policy = auditor.policy
    judged = {*policy.required, *(key.split(".")[0] for key in policy.limits)}
    chosen = sorted((name for name in names if name in judged), key=lambda name: name in ATTACKS)
    has_failed = False

    def run_one(name: str) -> AuditResult:
        nonlocal has_failed
        if has_failed:
            return AuditResult(skip=Skip(Reason.NOT_REQUESTED))
        result = auditor.run_one(name)
        has_failed = result.error is not None or any(
            judge(score, policy.limits[score.name]).outcome == "FAIL"
            for score in result.value or ()
            if score.name in policy.limits
        )
        return result

    return add_comparison(run_audit(run_one, chosen), auditor.comparison, not_run)


def make_frames(
    kind: Kind, sample: Sample, Y: Floats
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, str | None]:
    """Return original, release and control as tables, with the label if rows have one."""
    names = [f"x{j}" for j in range(sample.X.shape[1])]
    own = names if kind.columns == "same" else [f"y{j}" for j in range(Y.shape[1])]
    has_label = sample.label is not None and (kind.aligned or kind.find_source is not None)

    def make(values: Floats, columns: list[str], label: Ints | None) -> pd.DataFrame:
        frame = pd.DataFrame(values, columns=columns)
        return frame.assign(**{LABEL: label}) if has_label else frame

    of_rows = None if sample.label is None else sample.label[kind.source(sample.X)]
    return (
        make(sample.X, names, sample.label),
        make(Y, own, of_rows),
        make(sample.others, names, sample.other_label),
        LABEL if has_label else None,
    )


def run_cases(cases: Sequence[Case], path: Path, jobs: int = 1) -> int:
    """Audit the cases that the file does not hold; return how many there were."""
    done = {result.case for result in read_results(path)}
    missing = [case for case in cases if case not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text() if path.exists() else ""
    with path.open("a") as lines:
        lines.write("\n" if text and not text.endswith("\n") else "")  # a line was cut off
        for count, result in enumerate(audit_all(missing, jobs), 1):
            lines.write(json.dumps(asdict(result)) + "\n")
            lines.flush()
            one = result.case
            print(f"{count}/{len(missing)} {one.table}, {one.kind}, {one.n}: {result.verdict}")
    return len(missing)


def audit_all(cases: Sequence[Case], jobs: int) -> Iterator[Result]:
    """Yield the results of all cases, in this process or, in any order, from several."""
    if jobs < 2:
        yield from map(audit_case, cases)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(audit_case, case) for case in cases]):
            yield future.result()


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--group", choices=("safe", "unsafe", "all"), default="all")
    parser.add_argument("--kinds", nargs="+", default=None, help="names; all if not given")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--sizes", nargs="+", type=int, default=[500])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--known", nargs="+", type=int, default=[60])
    parser.add_argument("--evenly", action="store_true", help="one kind for each table and seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--compare", type=Path)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    given = parse_arguments(arguments)
    if given.compare:
        print(compare_results(read_results(given.compare), read_results(given.results)))
    elif given.summary:
        print(summarize(read_results(given.results)))
    else:
        group = {"safe": SAFE, "unsafe": UNSAFE, "all": KINDS}[given.group]
        kinds = given.kinds or list(group)
        unknown = sorted({*kinds} - {*KINDS})
        if unknown:
            sys.exit(f"No such kind: {', '.join(unknown)}.")
        cases = list_cases(given.tables, kinds, given.sizes, given.seeds, given.known)
        run_cases(spread_kinds(cases) if given.evenly else cases, given.results, given.jobs)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for the processes that are started
    np.seterr(under="ignore")
    main()
