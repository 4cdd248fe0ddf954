"""The claims of the papers: registry, decisions, data, and a sample of the experiments."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.grid_noise import GridNoise
from studies.reproduction.decision import (
    Verdict,
    compute_interval,
    decide_again,
    decide_claim,
    judge,
)
from studies.reproduction.experiments import EXPERIMENTS
from studies.reproduction.measurement import Measurement
from studies.reproduction.page_cells import read_sentences
from studies.reproduction.picture_list import PICTURES
from studies.reproduction.registry import (
    MAX_FULL_DRAWS,
    PAPERS,
    Claim,
    Statement,
    parse_claim,
    read_registry,
    select_claims,
)
from studies.reproduction.results import (
    find_result,
    measure,
    name_quantities,
    read_result,
    write_result,
)
from studies.reproduction.sampling import (
    choose_tenth,
    find_changed,
    read_committed_statements,
    read_committed_verdicts,
)
from studies.reproduction.tables import (
    GENERATED,
    SOURCES,
    check_data,
    is_large,
    read_origins,
)

CLAIM = Claim(
    id="P9.C1",
    place="section 1",
    claim="A quantity is about 5.",
    figure="5",
    kind="statistical",
    experiment="none",
    statements=(Statement("q/*", 5.0, 5.0),),
    tolerance=0.5,
    minutes=1,
)
# Fast claims of each paper, which the slow test measures again.
SAMPLE = {
    "P0": ("P0.C3", "P0.C5", "P0.C6", "P0.C9", "P0.C13"),
    "P1": ("P1.C1", "P1.C4", "P1.C5", "P1.C14"),
    "P2": ("P2.C1", "P2.C21", "P2.C22", "P2.C23"),
    "P3": ("P3.C1", "P3.C2", "P3.C3", "P3.C26"),
    "P4": ("P4.C26",),
}


def measure_claim(id: str) -> tuple[Claim, Verdict]:
    """Measure one claim in this process."""
    (claim,) = select_claims(id=id)
    large = frozenset(table for table in claim.data if is_large(table))
    quantities = {}
    for job in claim.list_measurements(large, full=False):
        quantities |= name_quantities(job, measure(job)[0])
    return claim, decide_claim(claim, quantities).verdict


def test_registry_of_the_papers_is_complete_and_valid() -> None:
    papers, claims = read_registry()
    ids = [claim.id for claim in claims]
    assert tuple(paper.id for paper in papers) == PAPERS
    assert len(set(ids)) == len(ids)
    assert len([claim for claim in claims if not claim.variant_of]) >= 55
    tables = {*read_origins(), *GENERATED, *SOURCES, ""}
    errata = read_sentences("errata.toml")
    for claim in claims:
        assert re.fullmatch(r"P[0-4]\.C\d+[a-z]?", claim.id)
        assert claim.experiment in EXPERIMENTS, claim.id
        assert set(claim.data) <= tables, claim.id
        assert set(claim.erratum) <= set(errata), claim.id
        assert claim.variant_of in ("", *ids)
        number = claim.id.rstrip("abcdefgh")
        readings = [each for each in claims if each.id.rstrip("abcdefgh") == number]
        assert [bool(each.variant_of) for each in readings].count(False) == 1
        assert claim.place
        assert claim.figure
    assert set(EXPERIMENTS) == {claim.experiment for claim in claims}
    assert {picture.experiment for picture in PICTURES} <= set(EXPERIMENTS)


@pytest.mark.parametrize(
    "change",
    [{"kind": "guess"}, {"needs": 0.2}, {"tolerance": -1}, {"draws": 0}, {"statements": []}],
)
def test_parse_claim_with_a_wrong_field_names_the_claim(change: dict[str, object]) -> None:
    entry = {
        "id": "P9.C1",
        "place": "x",
        "claim": "x",
        "figure": "x",
        "kind": "exact",
        "experiment": "x",
        "statements": [{"quantity": "x", "low": 0.0}],
        "tolerance": 0.0,
        "minutes": 1,
    }
    assert parse_claim("p9.toml", entry).id == "P9.C1"
    with pytest.raises(BadInput, match=r"P9\.C1"):
        parse_claim("p9.toml", entry | change)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([5.0, 5.1, 4.9, 5.0], Verdict.HOLDS),
        ([7.0, 7.1, 6.9, 7.0], Verdict.FAILS),
        ([5.5, 5.6, 5.4, 5.5], Verdict.OPEN),
        ([4.0, 7.0, 5.5, 6.5], Verdict.OPEN),
    ],
)
def test_decide_claim_of_one_statement_goes_by_its_interval(
    values: list[float], verdict: Verdict
) -> None:
    assert decide_claim(CLAIM, {"q/wine": values}).verdict is verdict


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ((4, 0, 0), Verdict.HOLDS),
        ((3, 0, 1), Verdict.OPEN),
        ((3, 1, 0), Verdict.PART),
        ((1, 3, 0), Verdict.FAILS),
        ((0, 2, 2), Verdict.OPEN),
        ((0, 0, 0), Verdict.OPEN),
    ],
)
def test_judge_with_several_statements_follows_the_committed_rule(
    counts: tuple[int, int, int], verdict: Verdict
) -> None:
    assert judge(CLAIM, *counts) is verdict


def test_judge_with_a_share_needs_no_more_than_that_share() -> None:
    assert judge(replace(CLAIM, needs=0.51), 14, 13, 0) is Verdict.HOLDS
    assert judge(replace(CLAIM, needs=0.51), 13, 14, 0) is not Verdict.HOLDS


def test_compute_interval_of_draws_is_that_of_student() -> None:
    # t of 0.995 with 3 degrees of freedom is 5.8409; deviation 1.2910, root of 4 is 2.
    mean, low, high = compute_interval([1.0, 2.0, 3.0, 4.0])
    assert (mean, low, high) == pytest.approx((2.5, 2.5 - 3.7703, 2.5 + 3.7703), abs=1e-3)
    assert compute_interval([3.0]) == (3.0, 3.0, 3.0)


def test_check_data_without_files_names_them_and_their_origin(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        check_data(["iris_two", "magic"], tmp_path)
    message = str(caught.value)
    assert "iris.csv" in message
    assert "UCI MAGIC Gamma Telescope" in message
    assert "PPDM_DATA" in message


def test_check_data_with_another_version_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "iris.csv").write_text("changed")
    with pytest.raises(BadInput, match=r"other versions of iris\.csv"):
        check_data(["iris"], tmp_path)


def test_write_result_then_read_gives_the_same_quantities(tmp_path: Path) -> None:
    job = Measurement("salary_example", "", "{}", 1, False)
    path = find_result(tmp_path, job)
    found, seconds = measure(job)
    write_result(path, job, found, seconds)
    read = read_result(path)
    assert read.quantities == found
    assert read.is_current(job)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_find_result_of_another_setting_is_another_file(tmp_path: Path) -> None:
    job = Measurement("salary_example", "", "{}", 1, False)
    others = (replace(job, draws=2), replace(job, is_full=True), replace(job, table="wine"))
    assert len({find_result(tmp_path, each) for each in (job, *others)}) == 4


def test_choose_tenth_takes_a_tenth_in_order() -> None:
    claims = select_claims()
    chosen = choose_tenth(claims)
    assert len(chosen) == -(-len(claims) // 10)
    assert [each for each in claims if each in chosen] == list(chosen)


def test_find_changed_with_no_committed_run_finds_nothing(tmp_path: Path) -> None:
    finding = decide_claim(CLAIM, {"q/wine": [5.0]})
    assert find_changed((finding,), tmp_path / "none.parquet") == ()


def test_statements_of_cheap_experiments_match_a_quantity() -> None:
    for name in ("breach_examples", "salary_example", "length_bounds"):
        found, _ = measure(Measurement(name, "", "{}", 1, False))
        for claim in select_claims():
            if claim.experiment == name:
                for each in claim.statements:
                    assert any(fnmatchcase(key, each.quantity) for key in found), claim.id


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_sample_of_claims_has_the_committed_verdicts(
    paper: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    committed = read_committed_verdicts()
    assert committed
    for id in SAMPLE[paper]:
        assert measure_claim(id)[1] == committed[id], id


@pytest.mark.slow
@pytest.mark.parametrize("id", ["P4.C1", "P4.C6", "P4.C10"])
def test_claims_of_scaling_have_the_committed_verdict_on_wine(
    id: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    (claim,) = select_claims(id=id)
    small = replace(claim, data=("wine",), draws_of={})
    (job,) = small.list_measurements(frozenset(), full=False)
    found = decide_claim(small, name_quantities(job, measure(job)[0]))
    committed = read_committed_statements()[id]
    on_wine = [each for each in committed if each.quantity.endswith("/wine")]
    assert found.verdict == decide_again(small, on_wine).verdict


@pytest.mark.slow
def test_noise_that_is_too_small_flips_a_verdict(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    (claim,) = select_claims(id="P0.C12")
    small = replace(claim, data=("wdbc", "waveform"))

    def decide() -> Verdict:
        quantities = {}
        for job in small.list_measurements(frozenset({"waveform"}), full=False):
            quantities |= name_quantities(job, measure(job)[0])
        return decide_claim(small, quantities).verdict

    assert decide() is Verdict.HOLDS
    draw = GridNoise.draw
    monkeypatch.setattr(
        GridNoise,
        "draw",
        lambda self, bits: np.rint(0.8 * draw(self, bits)).astype(np.int64),
    )
    assert decide() is Verdict.FAILS


def test_decide_again_uses_the_present_rule_on_earlier_intervals() -> None:
    before = decide_claim(CLAIM, {"q/wine": [5.5, 5.6, 5.4, 5.5]})
    assert before.verdict is Verdict.OPEN
    wider = replace(CLAIM, tolerance=2.0)
    after = decide_again(wider, before.decided)
    assert after.verdict is Verdict.HOLDS
    assert after.decided[0].claimed == (3.0, 7.0)
    other = replace(CLAIM, statements=(Statement("other", 0.0),))
    assert decide_again(other, before.decided).verdict is Verdict.OPEN


def test_read_committed_statements_has_every_committed_verdict() -> None:
    statements, verdicts = read_committed_statements(), read_committed_verdicts()
    assert statements.keys() == verdicts.keys()
    known = {claim.id: claim for claim in select_claims()}
    for id, decided in statements.items():
        assert decide_again(known[id], decided).verdict == verdicts[id], id


@pytest.mark.parametrize(
    ("table", "full", "draws"),
    [
        ("wine", False, 100),
        ("iris", True, 50),
        ("magic", False, 5),
        ("waveform", False, 30),
        ("synthetic_2", False, 20),
        ("magic", True, MAX_FULL_DRAWS),
        ("waveform", True, 30),
        ("synthetic_2", True, 5),
    ],
)
def test_list_measurements_of_a_full_run_has_few_draws_where_the_table_grows(
    table: str, full: bool, draws: int
) -> None:
    claim = replace(
        CLAIM,
        data=(table,),
        draws=100,
        large_draws=5,
        draws_of={"iris": 50, "waveform": 30, "synthetic_2": 20},
    )
    large = frozenset({"magic", "waveform", "synthetic_2"})
    (job,) = claim.list_measurements(large, full=full)
    assert job.draws == draws
