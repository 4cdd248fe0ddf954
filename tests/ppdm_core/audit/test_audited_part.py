"""Audits of a part of the records, with the rows of all others in blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.audit import audited_part
from ppdm_core.audit.audited_part import choose_part
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import collect_inputs, draw_shadows
from ppdm_core.audit.label_risk import has_small_class, score_label
from ppdm_core.audit.simulation import choose_participants, limit_targets
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import make_sanitizer
from tests.support.audit_cases import make_truth
from tests.support.tables import fit_sanitizer
from tests.support.views import make_columns

N, PART, D = 900, 300, 4


def make_rows(n: int = N) -> ArrayRows:
    truth = make_truth(n)
    schema = replace(make_columns(D), label=Categorical("y", ("a", "b")))
    key = np.random.default_rng(2).integers(0, 256, (n, 16), dtype=np.uint8)
    return ArrayRows(schema, truth.X, truth.label, key)


def make_auditor(most: int = PART, n: int = N) -> Auditor:
    rows, method = make_rows(n), make_sanitizer("additive_noise", {"b": 0.1})
    policy = Policy((), {}, Attacker(20, 0.1, 0.1), shadow_draws=1, splits=1, effort="quick")
    fitted = fit_sanitizer(method, rows)
    draws = draw_shadows(
        rows, method, Noise(bytes(32)), fitted, policy, scope=("part",), refit_halves=True
    )
    part = choose_part(rows, Noise(bytes(32)), most)
    inputs = collect_inputs(rows, draws, row_aligned=True, part=part)
    return Auditor(inputs.original, inputs.draws, policy, b"part", inputs.halves)


def test_choose_part_small_table_all_records():
    assert choose_part(make_rows(50), Noise(bytes(32)), 50) is None


def test_choose_part_large_table_as_many_records_as_asked():
    rows = make_rows()
    one, other = (choose_part(rows, Noise(bytes([k] * 32)), PART) for k in (0, 1))
    assert one is not None and other is not None
    assert len(one) == PART == len(np.unique(one))
    assert (np.diff(one) > 0).all()
    assert 60 < len(np.intersect1d(one, other)) < 140  # 100 by chance


def test_collect_inputs_part_rows_belong_to_their_records():
    auditor = make_auditor()
    (draw,), truth = auditor.draws, auditor.truth
    assert len(draw.Y) == len(truth.X) == PART and truth.record_count == N
    assert draw.others is not None and draw.others.n == N - PART
    assert np.abs(draw.Y - truth.X).mean() < 0.15  # noise of scale 0.1; 0.33 for other records
    (half,) = auditor.halves
    assert half.members is not None and len(half.Y) == len(half.members)
    assert half.others is not None and 0 < half.others.n < N - PART


def test_label_risk_part_counts_rows_of_all_records():
    one, whole = make_auditor(), make_auditor(most=N)
    assert whole.draws[0].others is None
    scores = [score_label(each.truth, each.draws[0]) for each in (one, whole)]
    assert scores[0].value == pytest.approx(scores[1].value)
    assert scores[0].baseline == scores[1].baseline == 1 / N
    assert not has_small_class(one.truth, one.draws[0])


def test_link_baseline_part_is_that_of_all_rows():
    rates = [
        next(each for each in make_auditor(most).run("record_linkage") if "rate" in each.name)
        for most in (PART, N)
    ]
    assert rates[0].baseline == pytest.approx(rates[1].baseline, rel=0.1)
    assert rates[0].value < 1.5 * rates[1].value + 0.05  # not easier than among all rows


def test_choose_participants_part_sample_is_a_share_of_all_records():
    rng = np.random.default_rng(0)
    roles = choose_participants(50_000, D, Attacker(40, 0.02), rng, total=1_000_000)
    assert len(roles.sample) == 20_000 and len(roles.unknown) == 20_000
    greedy = choose_participants(50_000, D, Attacker(40, 0.5), rng, total=1_000_000)
    assert len(greedy.unknown) == 20_000


@pytest.mark.parametrize(
    ("rows", "persons"), [(10_000, 2_000), (1_000_000, 2_000), (4_000_000, 500), (10**8, 200)]
)
def test_limit_targets_large_release_fewer_persons(rows: int, persons: int):
    assert limit_targets(rows) == persons


def read_in_memory(view: AttackerView) -> AttackerView:
    """Return the same view with all further rows in memory."""
    assert view.further is not None
    blocks = list(view.further.blocks())
    Y = np.concatenate([view.Y, *(block.Y for block in blocks)])
    found = {
        name: np.concatenate([view.reconstructions[name], f(Y[len(view.Y) :])])
        for name, f in view.reconstruct.items()
    }
    return replace(
        view,
        Y=Y,
        label=np.concatenate([view.label, *(block.label for block in blocks)]),
        C=np.zeros((len(Y), 0), dtype=np.int32),
        reconstructions=found,
        further=None,
        reconstruct={},
    )


def test_record_linkage_streamed_rows_same_links_as_in_memory(monkeypatch):
    monkeypatch.setattr(audited_part, "SEARCH_BLOCK_ROWS", 128)
    view = make_auditor().build_linkage_view(0)
    whole = read_in_memory(view)
    assert len(whole.Y) == N and view.reconstruct
    got, expected = (RecordLinkage().attack(v, np.random.default_rng(0)) for v in (view, whole))
    assert {*got.candidates} == {*expected.candidates}
    for name, links in expected.candidates.items():
        # The background of the odds is fitted to the rows in memory. An assignment of a small
        # table is exact among all rows.
        least = 0.9 if "odds" in name or "one_to_one" in name else 1.0
        assert np.mean(got.candidates[name] == links) >= least, name
    found = got.candidates["likelihood"]
    assert (found >= len(view.Y)).any() and (found < N).all()


def test_run_trials_streamed_link_to_another_record_is_wrong():
    auditor = make_auditor()
    trial = auditor.trials[0]
    links = np.array([PART, N - 1, -1])
    assert trial.align("link", links).tolist() == [PART, PART, -1]  # no record has that number
