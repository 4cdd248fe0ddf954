"""The calibration study: a dozen audits, resuming, and its tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from studies import audit_calibration
from studies.audit_calibration import audit_case, list_cases, main, run_cases, spread_kinds
from studies.calibration_results import Case, Result, read_results
from studies.calibration_summary import compare_results, summarize

SMALL = {"table": "three_columns", "n": 120, "seed": 0, "known": 40}
CASE = Case(kind="copy", **SMALL)
RESULTS = [
    Result(Case("incomes", "fitted normal", 500, 0, 60), "FAIL", {"a.rate": "FAIL"}),
    Result(Case("incomes", "column means", 500, 0, 60), "PASS"),
    Result(Case("incomes", "copy", 500, 0, 60), "FAIL", {"a.rate": "FAIL"}, (1.0, 0.0, 0.05)),
    Result(Case("incomes", "tanh", 500, 0, 60), "PASS", {}, (0.9, 0.0, 0.05)),
    Result(Case("incomes", "ranks", 500, 0, 60), "PASS", {}, (0.09, 0.0, 0.05)),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["column means", "fitted normal", "strong Laplace noise"])
def test_audit_case_safe_release_not_refused(kind: str) -> None:
    result = audit_case(Case(kind=kind, **SMALL))
    assert result.verdict in ("PASS", "REVIEW") and result.proof is None


@pytest.mark.slow
@pytest.mark.parametrize("table", ["three_columns", "skewed", "correlated"])
def test_audit_case_safe_release_of_500_records_passes(table: str) -> None:
    assert audit_case(Case(table, "fitted normal", 500, 1, 20)).verdict == "PASS"


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind",
    [
        "copy",
        "affine map",
        "swapping",
        "rank swapping",
        "two-point noise",
        "cubes",
        "one column scaled",
        "ranks",
        "low decimals",
    ],
)
def test_audit_case_unsafe_release_refused(kind: str) -> None:
    result = audit_case(Case(kind=kind, **SMALL))
    assert result.verdict == "FAIL" and result.is_proved


def test_spread_kinds_each_table_meets_other_kinds_all_equally_often() -> None:
    kinds = ["a", "b", "c", "d"]
    cases = spread_kinds(list_cases(["uniform", "skewed"], kinds, [100], 4, [20]))
    for table in ("uniform", "skewed"):
        assert sorted(case.kind for case in cases if case.table == table) == kinds


@pytest.mark.extended
def test_main_second_run_skips_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "out.jsonl"
    given = ["--tables", "three_columns", "--sizes", "100", "--kinds", "copy", "column means"]
    main([str(path), *given])
    done = read_results(path)
    assert [one.case.kind for one in done] == ["copy", "column means"]
    assert done[0].verdict == "FAIL" and done[0].checks and done[0].seconds > 0
    monkeypatch.setattr(audit_calibration, "audit_case", lambda case: replace(done[0], case=case))
    main([str(path), *given, "--seeds", "2"])
    assert [one.case.seed for one in read_results(path)] == [0, 0, 1, 1]
    main([str(path), "--summary"])
    assert "## Safe releases (2 audits)" in capsys.readouterr().out


def test_run_cases_line_cut_off_audited_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, others = tmp_path / "out.jsonl", [replace(CASE, seed=seed) for seed in range(3)]
    monkeypatch.setattr(audit_calibration, "audit_case", lambda case: Result(case, "PASS"))
    assert run_cases(others, path) == 3
    path.write_text(path.read_text()[:-20])
    assert len(read_results(path)) == 2
    assert run_cases(others, path) == 1
    assert {one.case for one in read_results(path)} == {*others}


@pytest.mark.slow
def test_run_cases_two_processes_same_verdicts(tmp_path: Path) -> None:
    cases = [replace(CASE, n=100, kind=kind) for kind in ("copy", "column means")]
    run_cases(cases, tmp_path / "out.jsonl", jobs=2)
    found = {one.case.kind: one.verdict for one in read_results(tmp_path / "out.jsonl")}
    assert found == {one.kind: audit_case(one).verdict for one in cases}


def test_list_cases_only_sizes_that_a_table_has() -> None:
    cases = list_cases(["uniform"], ["copy"], [100, 20_000], 2, [20, 60])
    assert [(one.n, one.seed, one.known) for one in cases] == [
        (100, 0, 20),
        (100, 0, 60),
        (100, 1, 20),
        (100, 1, 60),
    ]


def test_main_unknown_kind_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="No such kind: nothing"):
        main([str(tmp_path / "out.jsonl"), "--kinds", "nothing"])


def test_summarize_counts_verdicts_and_proofs() -> None:
    lines = summarize(RESULTS).splitlines()
    assert "| fitted normal | 1 | 0 | 0 | 1 | 0 | 0% | a.rate 1 |" in lines
    assert "## Unsafe releases (2 audits)" in lines
    assert "Not counted: 1 releases whose proof does not hold." in lines
    assert "1 fail only by checks that also fail safe releases of the same table." in lines
    assert "| nonlinear maps: tanh | 1 | 1 | 0 | 0 | 0 | 100% |  |" in lines
    assert "* tanh: incomes (500)" in lines


def test_compare_results_worse_cases_named() -> None:
    after = [replace(one, verdict="REVIEW") if one.verdict == "FAIL" else one for one in RESULTS]
    lines = compare_results(RESULTS, after[:-1]).splitlines()
    assert lines[0] == "4 audits are in both files."
    assert "| FAIL | REVIEW | 1 |" in lines and "| PASS | PASS | 1 |" in lines
    assert "* copy, incomes, 500 records, 60 known, seed 0: REVIEW (a.rate)" in lines
    assert "Worse than before: 1." in lines and "Worse than before: 0." in lines
