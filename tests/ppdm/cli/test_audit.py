"""`ppdm audit` on files of any origin: what it reads, reports and refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import ppdm
from ppdm.cli.app import main
from ppdm.cli.audit import audit_release
from ppdm.cli.table_audit import read_table
from ppdm.policies import DEFAULT_POLICY, load_policy
from ppdm_core import judge_tables
from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.evaluators import GOALS_WITH_OUTSIDERS
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.two_tables.comparison import compare_tables
from ppdm_core.two_tables.runner import choose_table_audits
from ppdm_core.two_tables.tables import as_table
from tasks.audit.cost_estimate import compute_cost, estimate_cost
from tests.support.policies import QUICK

SYNTHETIC = DEFAULT_POLICY.with_name("synthetic_policy.toml")
N = 60
RNG = np.random.default_rng(11)
SCORE_KEYS = {"attack", "metric", "value", "low", "high", "baseline", "n", "sentence"}
SECRET = 731.25  # a cell that no message may hold


def people(n: int = N) -> pd.DataFrame:
    X = RNG.gamma(2.0, 1.0, (n, 3)) * [1.0, 40.0, 1000.0]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "town": "Ulm"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a private table, a copy of it, records of other persons, and a policy."""
    monkeypatch.chdir(tmp_path)
    original = people()
    original.to_csv("A.csv", index=False)
    original.to_parquet("B.parquet")
    people().to_csv("C.csv", index=False)
    Path("quick.toml").write_text(QUICK)
    return tmp_path


def run_audit_command(
    *arguments: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as end:
        main(["audit", *arguments, "--json"])
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert isinstance(end.value.code, int)
    return end.value.code, json.loads(printed)


FILES = ("--original", "A.csv", "--released", "B.parquet")


@pytest.mark.extended
def test_audit_copy_of_original_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(folder.iterdir())
    code, found = run_audit_command(*FILES, "--policy", "quick.toml", capsys=capsys)
    assert (code, found["exit_code"], found["ok"], found["verdict"]) == (3, 3, False, "FAIL")
    assert found["error"]["kind"] == "refused"
    assert all(set(score) >= SCORE_KEYS for score in found["scores"])
    linked = [score for score in found["scores"] if score["attack"] == "record_linkage"]
    assert linked[0]["metric"] == "rate" and linked[0]["value"] == 1.0
    assert linked[0]["n"] == N - 8
    assert found["left_out"] == {"town": "no numbers"}
    assert "known_pairs" in found["not_run"]  # the effort is quick
    assert found["failed"] == {}
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
def test_audit_other_records_passes_with_full_text(folder: Path) -> None:
    """Row i reveals nothing about record i."""
    people().to_csv("B.csv", index=False)
    result = audit_release(Path("A.csv"), Path("B.csv"), policy=Path("quick.toml"), every=True)
    assert (result.exit_code, result.payload["verdict"]) == (0, "PASS"), result.text
    lines = result.text.splitlines()
    assert lines[0].startswith("╭─  PASS  B.csv against A.csv ─")
    assert "60 records, 3 columns in common, rows aligned" in lines[2]
    below = lines[[line[:1] for line in lines].index("╰") :]
    assert below[2].split() == ["attack", "metric", "value", "interval", "baseline", "n"]
    assert below[3].split()[:2] == ["record_linkage", "rate"]
    assert "  - An attacker with full records of real persons looks for their rows." in result.text
    assert "Left out: town. No numbers." in lines


@pytest.mark.extended
def test_audit_short_text_verdict_and_risks_first(folder: Path) -> None:
    pd.read_csv("A.csv").to_csv("B.csv", index=False)
    result = audit_release(Path("A.csv"), Path("B.csv"), policy=Path("quick.toml"))
    lines = result.text.splitlines()
    assert (result.exit_code, lines[0].split()[1]) == (3, "FAIL")
    assert "find a person (knows a person's full record)" in result.text
    assert "interval" not in result.text and "with --all" in result.text
    assert max(map(len, lines)) <= 100


@pytest.mark.slow
def test_audit_without_control_default_policy_is_review(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = people()[["a", "b", "c"]]  # other records
    noisy.to_csv("B.csv", index=False)
    files = ("--original", "A.csv", "--released", "B.csv", "--known-records", "5", "--sample", "6")
    code, found = run_audit_command(*files, capsys=capsys)
    outsiders = {name for name, attack in ATTACKS.items() if attack.goal in GOALS_WITH_OUTSIDERS}
    assert set(found["not_run"]) == outsiders
    assert all("--control" in why for why in found["not_run"].values())
    assert (code, found["verdict"]) == (4, "REVIEW"), found["findings"]
    assert found["error"]["kind"] == "undecided"
    assert found["failed"] == {}


@pytest.mark.slow
def test_audit_with_control_default_policy_can_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(3)
    A, C = (pd.DataFrame(rng.beta(2.0, 3.0, (3_000, 5)), columns=list("vwxyz")) for _ in range(2))
    B = A + rng.normal(0.0, 0.6, A.shape)
    for name, table in {"A": A, "B": B, "C": C}.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [
        "--original", str(tmp_path / "A.csv"), "--released", str(tmp_path / "B.csv"),
        "--control", str(tmp_path / "C.csv"),
    ]  # fmt: skip
    code, found = run_audit_command(*files, capsys=capsys)
    assert (code, found["verdict"]) == (0, "PASS"), [
        f["why"] for f in found["findings"] if f["outcome"] != "PASS"
    ]


@pytest.mark.slow
def test_audit_synthetic_data_synthetic_policy_can_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(4)
    for name in "ABC":  # as good as a generator can be: further records of the same population
        table = pd.DataFrame(rng.beta(2.0, 3.0, (3_000, 5)), columns=list("vwxyz"))
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [
        "--original", str(tmp_path / "A.csv"), "--released", str(tmp_path / "B.csv"),
        "--control", str(tmp_path / "C.csv"), "--unaligned",
    ]  # fmt: skip
    code, found = run_audit_command(*files, "--policy", str(SYNTHETIC), capsys=capsys)
    assert (code, found["verdict"]) == (0, "PASS"), found["findings"]


def test_synthetic_policy_unaligned_rows_all_limits_measurable() -> None:
    """Judge a report in which every audit that can run on unaligned rows ran and passed."""
    table = pd.DataFrame({name: RNG.random(9) for name in "vw"})
    case = compare_tables(
        *(as_table(name, table) for name in "ab"),
        control=as_table("c", 2 * table),
        aligned=False,
    )
    for path, outcome in ((SYNTHETIC, "PASS"), (DEFAULT_POLICY, "REVIEW")):
        policy = load_policy(path)
        names, reasons = choose_table_audits(case, policy)
        keys = [key for key in policy.limits if key.split(".")[0] in names]
        scores = tuple(
            Score(key, "privacy", "down", 0.01, 0.0, 0.02, 100, 0.0, 0.01) for key in keys
        )
        report = AuditReport(scores, not_run=reasons)
        assert judge_tables(report, policy)[0] == outcome


@pytest.mark.slow
def test_audit_renamed_columns_and_overlap_are_reported(folder: Path) -> None:
    original, control = (pd.read_csv(name, dtype=str) for name in ("A.csv", "C.csv"))
    original.rename(columns={"a": "f_a", "b": "f_b"}).to_csv("B.csv", index=False)
    pd.concat([control, original[:12]]).to_csv("C.csv", index=False)
    result = audit_release(
        Path("A.csv"), Path("B.csv"), control=Path("C.csv"), policy=Path("quick.toml")
    )
    lines = result.text.splitlines()
    assert "3 columns in common, rows aligned, 60 records in the control." in lines[2]
    assert "By its values, column f_a is matched with a, f_b with b." in lines[3]
    assert "12 rows of the control are rows of the original, and were left out." in lines[4]
    assert result.payload["taken_for"] == {"f_a": "a", "f_b": "b"}
    assert result.payload["control_left_out"] == 12
    assert (result.exit_code, result.payload["verdict"]) == (3, "FAIL")


def write(text: str, name: str = "B.csv") -> Path:
    Path(name).write_text(text)
    return Path(name)


def with_cell(cell: str) -> Path:
    table = pd.read_csv("A.csv").astype(object)
    table.loc[6, "b"] = cell
    table.to_csv("B.csv", index=False)
    return Path("B.csv")


def several_tables() -> Path:
    with duckdb.connect("B.duckdb") as db:
        db.execute("create table one as from 'A.csv'; create table two as from 'A.csv'")
    return Path("B.duckdb")


BAD: dict[str, tuple[Callable[[], Path], dict[str, Any], str]] = {
    "no file": (lambda: Path("none.csv"), {}, "none.csv does not exist"),
    "empty": (lambda: write(""), {}, "B.csv is empty"),
    "no rows": (lambda: write("a,b,c\n"), {}, "a header but no rows"),
    "not parquet": (lambda: write("a,b\n1,2\n", "B.parquet"), {}, "Parquet"),
    "infinite": (lambda: with_cell("inf"), {}, "Column 'b' of B.csv has 1 cell .* row 7"),
    "tables": (several_tables, {}, "several tables. Choose one as FILE::TABLE: one, two"),
    "label": (lambda: Path("A.csv"), {"label": "class"}, "label 'class' is not a column"),
    "known": (lambda: Path("A.csv"), {"known_records": "2.5"}, "--known-records takes"),
    "too many": (lambda: Path("A.csv"), {"known_records": "60"}, "none is left to attack"),
    "sample": (lambda: Path("A.csv"), {"sample": "-1"}, "--sample takes"),
    "no sample": (lambda: Path("A.csv"), {"sample": "S.csv"}, "S.csv does not exist"),
    "strangers": (lambda: Path("A.csv"), {"known_records": "C.csv"}, "the original does not"),
    "insiders": (lambda: Path("A.csv"), {"control": Path("A.csv")}, "rows of the original"),
    "no policy": (lambda: Path("A.csv"), {"policy": Path("none.toml")}, "policy file does not"),
}


@pytest.mark.parametrize("name", BAD)
def test_audit_bad_input_message_holds_no_cell(folder: Path, name: str) -> None:
    make, options, words = BAD[name]
    with pytest.raises(BadInput, match=words) as error:
        audit_release(Path("A.csv"), make(), **options)
    assert error.value.exit_code == 2
    assert error.value.remedy and "[source]" not in str(error.value)
    assert str(SECRET) not in str(error.value) and "Ulm" not in str(error.value)
    assert error.value.file or name in ("known", "too many", "sample")


def write_labelled(folder: Path, n: int, size: int) -> tuple[Path, Path]:
    """Write a table whose label has classes of this size, and a release of noise with the label."""
    label = [f"c{i // size}" for i in range(n)]
    columns = ["a", "b", "c"]
    original = people(n)[columns].assign(label=label)
    noise = pd.DataFrame(RNG.random((n, 3)) * [5.0, 200.0, 5000.0], columns=columns)
    paths = folder / "labelled.csv", folder / "noise.csv"
    for path, table in zip(paths, (original, noise.assign(label=label)), strict=True):
        table.to_csv(path, index=False)
    return paths


def write_label_policy(folder: Path, value: float) -> Path:
    """Write a policy that limits linkage and the label."""
    limit = f'{{ value = {value}, set_by = "DPO", reason = "a test" }}'
    path = folder / "label.toml"
    path.write_text(f'{QUICK}"label.rate" = {limit}\n')
    return path


def list_outcomes(report: ppdm.Report) -> dict[str, str]:
    return {each.check: each.outcome for each in report.findings}


def test_audit_label_without_limit_review(folder: Path) -> None:
    report = ppdm.audit(*write_labelled(folder, 240, 120), label="label", policy="quick.toml")
    assert report.verdict == "REVIEW"
    (finding,) = [each for each in report.findings if each.outcome == "REVIEW"]
    assert finding.check == "covered.label"
    assert "No limit is on label.rate" in finding.why


def test_audit_label_large_classes_pass(folder: Path) -> None:
    paths, policy = write_labelled(folder, 240, 120), write_label_policy(folder, 0.05)
    report = ppdm.audit(*paths, label="label", policy=policy)
    assert report.verdict == "PASS"
    score = report.find_score("label.rate")
    assert score is not None
    assert "That finds 0.8 % of them; picking rows at random finds 0.4 %." in score.sentence


@pytest.mark.extended
def test_audit_label_secret_in_small_classes_refused(folder: Path) -> None:
    """Classes of three: the label finds a third of the persons, and so does linkage by it."""
    paths, policy = write_labelled(folder, 240, 3), write_label_policy(folder, 0.05)
    result = audit_release(*paths, policy=policy, label="label")
    assert result.exit_code == 3
    found = {each["check"]: each for each in result.payload["findings"]}
    assert found["label.rate"]["outcome"] == found["record_linkage.rate"]["outcome"] == "FAIL"
    assert "A class has fewer than 50 records" in found["label.rate"]["why"]
    assert "find a person (knows only the label)" in result.text


def test_audit_label_identifier_fails_under_any_limit(folder: Path) -> None:
    paths, policy = write_labelled(folder, 240, 1), write_label_policy(folder, 1.0)
    report = ppdm.audit(*paths, label="label", policy=policy)
    assert report.verdict == "FAIL"
    assert list_outcomes(report)["label.identity"] == "FAIL"
    unaligned = ppdm.audit(*paths, label="label", policy=policy, aligned=False)
    assert list_outcomes(unaligned)["label.identity"] == "FAIL"


def test_audit_limit_above_ceiling_review(folder: Path) -> None:
    (folder / "wide.toml").write_text(QUICK.replace("value = 0.2", "value = 0.9"))
    tables = [pd.read_csv(path).drop(columns="label") for path in write_labelled(folder, 240, 120)]
    reports = [ppdm.audit(*tables, policy=name) for name in ("quick.toml", "wide.toml")]
    assert [each.verdict for each in reports] == ["PASS", "REVIEW"]
    (finding,) = [each for each in reports[1].findings if each.outcome == "REVIEW"]
    assert finding.check == "record_linkage.rate"
    assert "at most 0.9 above the baseline; DPO: a test) is weak" in finding.why
    assert "more than 0.2 above the baseline" in finding.why


def test_audit_policy_in_python_with_bad_limit_bad_input(folder: Path) -> None:
    policy = Policy((), {"record_linkage.rate": Limit(math.inf, "a", "b")})
    with pytest.raises(BadInput, match="'value' key of limit"):
        ppdm.audit("A.csv", "B.parquet", policy=policy)


POLICIES = {
    QUICK.replace("= 0.2", "= -0.2"): "must be a number of at least 0. Got -0.2.",
    QUICK.replace("= 0.2", "= nan"): "must be a finite number",
    '[audit]\nrequried = []\n[limits]\nx = {value = 1, set_by = "a", reason = "b"}': "'required'",
    "[attackers]\nknown_records = 3\n" + QUICK[QUICK.index("[audit]") :]: "'attacker'",
    QUICK.replace('["record_linkage"]', '["record_linkages"]'): "'record_linkage'",
    QUICK.replace("record_linkage.rate", "record_linkage.rates"): "'rate'",
    QUICK.replace("record_linkage.rate", "record_linkage.breach_rate"): "record_linkage.rate",
    QUICK.replace("record_linkage.rate", "closest_record"): "Remove the limit",
    QUICK.replace("= 8", "= -8"): "Number of records that the attacker knows",
    QUICK.replace('"quick"', '"hasty"'): "quick",
    "[limits]\n": "limits",
    "limits = [": "Correct that line",
}


@pytest.mark.parametrize("text", POLICIES)
def test_load_policy_wrong_word_suggests_right_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as error:
        load_policy(path)
    assert POLICIES[text] in str(error.value)
    assert "release file" not in str(error.value)
    assert error.value.file == str(path)


def test_default_policy_limits_every_goal() -> None:
    policy = load_policy(None)
    goals = {ATTACKS[name].goal for name in policy.required}
    assert goals >= {"reconstruct", "link", *GOALS_WITH_OUTSIDERS}
    limited = {name.split(".")[0] for name in policy.limits}
    assert limited >= set(policy.required)


def test_load_policy_optional_keys_have_defaults(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(QUICK.replace('effort = "quick"', 'time_limit = "2 min"'))
    policy = load_policy(path)
    assert (policy.time_limit, policy.effort) == (120.0, "standard")
    assert policy.attacker.known_records == 8


def test_read_table_every_kind_of_file_is_equal(folder: Path) -> None:
    several_tables()
    tables = [read_table(name, None) for name in ("A.csv", "B.parquet", "B.duckdb::two")]
    for table in tables:
        assert table.numeric() == ["a", "b", "c"]
        assert np.array_equal(table.numbers(["a", "b", "c"]), tables[0].numbers(["a", "b", "c"]))


def test_estimate_cost_more_work_costs_more() -> None:
    policy = Policy(required=(), limits={}, time_limit=120.0)
    small, large = (compute_cost((n, 10), 1, 20, policy, 1.0) for n in (1_000, 100_000))
    assert small[0] < large[0] and small[1] < large[1]
    assert compute_cost((1_000, 10), 3, 20, policy, 2.0)[0] > small[0]
    line = estimate_cost((1_000, 10), 1, ["a", "b"], policy).sentence
    assert line.startswith("2 audits on 1,000 records: about ")
    assert line.endswith("no audit gets more than 2 min")
