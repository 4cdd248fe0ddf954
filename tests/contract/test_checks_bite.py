"""A check that nothing can fail checks nothing: each must find the bugs planted for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.attacks.known_pairs import KnownPairs
from ppdm_core.gates.amplification import Amplification
from ppdm_core.gates.required_audits import RequiredAudits
from ppdm_core.sanitizers import SANITIZERS
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.contract import (
    cases,
    checks,
    checks_attacks,
    checks_draws,
    checks_gates,
    checks_metrics,
    planted,
)
from tests.contract import planted_sanitizers as bad
from tests.support.tables import table, with_values

WEAK = "slight noise"
QUOTED = str(1.0)  # the largest scaled value

# (check, what it is given, further arguments); a type is made first.
BUGS: list[tuple[Callable[..., None], Any, tuple[Any, ...]]] = [
    (checks.check_input_untouched, bad.WritesItsInput, ()),
    (checks.check_same_key_same_output, bad.DrawsAnotherKey, ()),
    (checks.check_keys_matter, bad.IgnoresItsKey, ()),
    (checks.check_global_state_unmoved, bad.MovesGlobalState, ()),
    (checks.check_global_state_unmoved, bad.ReadsGlobalState, ()),
    (checks.check_storage_does_not_matter, bad.FitsTheFirstChunk, ("tmp_path",)),
    (checks.check_storage_does_not_matter, bad.CountsWithinParts, ("tmp_path",)),
    (checks.check_steps_hold_no_state, bad.NumbersItsBlocks, ()),
    (checks.check_steps_hold_no_state, bad.NumbersItsCounts, ()),
    (checks.check_steps_hold_no_state, bad.CountsOutsideTheBlock, ()),
    (checks.check_declared_shape, bad.ReleasesNan, ()),
    (checks.check_declared_shape, bad.LosesARow, ()),
    (checks.check_declared_shape, bad.SwapsRows, ()),
    (checks.check_declared_shape, bad.DeclaresOtherColumns, ()),
    (checks.check_declared_shape, bad.PublishesAnotherName, ()),
    (checks.check_declared_shape, bad.HidesCategories(gamma={"attribute": 3}), ()),
    (checks.check_verbatim_within_law, bad.ReturnsRowsVerbatim, ()),
    (checks.check_verbatim_within_law, bad.ReturnsSomeRowsVerbatim, ()),
    (checks.check_verbatim_within_law, bad.ForgetsSomeNoise, ()),
    (checks.check_verbatim_within_law, bad.KeepsCategories(gamma={"attribute": 3}), ()),
    (checks.check_bad_input, bad.ReleasesNan, (table(), "?")),
    (checks.check_bad_input, bad.QuotesAValue, (with_values(table().whole.X * 1e9), QUOTED)),
    (checks.check_bad_input, bad.SaysNoSentence, (table(), "?")),
    (checks.check_more_noise_more_distortion, bad.sound(), (bad.IgnoresItsLevel(b=1.2),)),
    (checks.check_more_noise_more_distortion, PcaLaplace(b=1.2), (PcaLaplace(b=0.3),)),
    (checks.check_unchanged_records_keep_their_bytes, bad.CentresEachBlock, ()),
    (checks.check_unchanged_records_keep_their_bytes, bad.KeysByPosition, ()),
    (checks_draws.check_every_draw_has_a_name, bad.ChargesByItsFirstColumn, ()),
    (checks_draws.check_every_draw_has_a_name, bad.ChargesByTheTable, ()),
    (checks_draws.check_charges_add_up, bad.ChargesHalf, ()),
    (checks.check_promise, bad.PromisesWithoutBound, ()),
    (checks.check_promise, bad.PromisesInfinity, ()),
    (checks.check_promise, bad.PromisesLessThanItsPart, ()),
    (checks.check_promise, bad.PromisesOnNothing, ()),
    (checks.check_documented, bad.Planted(), ()),
    (checks.check_documented, bad.BrokenByNobody(), ()),
    (checks.check_documented, bad.HidesAParameter(), ()),
    (checks.check_parameters_are_checked, bad.TakesWhatItGets, ()),
    (checks.check_parameters_are_checked, bad.TakesAnything, ()),
    (checks.check_named_alike, PcaLaplace, ("pca", cases.SANITIZERS)),
    (checks.check_named_alike, PcaLaplace, ("pca_laplace", {"random_rotation": 1})),
    (checks.check_named_alike, bad.Planted, ("pca_laplace", cases.SANITIZERS)),
    *(
        (
            checks_attacks.check_breaks_weak_release,
            planted.IgnoresTheRelease(key, ATTACKS[key].goal),
            (weak,),
        )
        for key, weak in cases.ATTACKS.items()
    ),
    (checks_attacks.check_breaks_weak_release, planted.AnswersByPosition, (WEAK,)),
    (checks_attacks.check_gets_nothing_from_noise, planted.KnowsTheTruth, (WEAK,)),
    (checks_attacks.check_needs_are_checked, planted.RunsWithoutItsNeeds, (WEAK,)),
    (checks_attacks.check_view_untouched, planted.WritesToItsView, (WEAK,)),
    (checks_attacks.check_view_untouched, planted.SortsItsTargets, (WEAK,)),
    (checks_attacks.check_view_untouched, planted.ReturnsItsView, (WEAK,)),
    (checks_attacks.check_answers_have_their_shape, planted.AnswersTooShort, (WEAK,)),
    (checks_attacks.check_answers_have_their_shape, planted.AnswersNan, (WEAK,)),
    (checks_attacks.check_answers_have_their_shape, planted.PointsBehindTheTable, (WEAK,)),
    (checks_attacks.check_row_order_tells_nothing, planted.AnswersByPosition, (WEAK,)),
    (checks_attacks.check_repeats, planted.UsesGlobalNumpy, (WEAK,)),
    (checks_attacks.check_tells_its_story, planted.TellsNoStory, ()),
    (checks_metrics.check_inside_bounds, planted.ScoresAboveOne, ()),
    (checks_metrics.check_inside_bounds, planted.ScoresNan, ()),
    (checks_metrics.check_copy_is_extreme, planted.ScoresAboveOne, (2.0,)),
    (checks_metrics.check_copy_is_extreme, planted.ScoresUpsideDown, (0.0,)),
    (checks_metrics.check_noise_differs_from_copy, planted.ScoresEverythingAlike, ()),
    (checks_metrics.check_noise_differs_from_copy, planted.ScoresUpsideDown, ()),
    (checks_metrics.check_nan_refused, planted.SkipsNan, ()),
    (checks_metrics.check_nan_refused, planted.CountsNanAsMiss, ()),
    (checks_metrics.check_bad_shapes_refused, planted.ScoresWhatItGets, ()),
    (checks_metrics.check_more_noise_is_worse, planted.LikesNoise, ()),
    (checks_metrics.check_deterministic, planted.TossesCoins, ()),
    (checks_metrics.check_deterministic, planted.ForgetsThePart, ()),
    (checks_metrics.check_sentence, planted.SpeaksWithoutFigures, ()),
    (checks_metrics.check_capabilities, planted.DeclaresFlagAsText, ()),
    (checks_gates.check_passes_good_evidence, planted.RefusesAlways, ()),
    (checks_gates.check_passes_good_evidence, planted.SaysNothing, ()),
    (checks_gates.check_refuses, planted.PassesNan, ("value is NaN",)),
    (checks_gates.check_refuses, planted.PassesNan, ("high is infinite",)),
    (checks_gates.check_refuses, planted.PassesAlways, ("empty report",)),
    (checks_gates.check_refuses, RequiredAudits, ("value is NaN",)),
    (checks_gates.check_refuses, Amplification, ("required audit failed",)),
    (checks_gates.check_findings_explain_themselves, planted.GivesNoReason, ()),
    (checks_gates.check_worse_score_never_helps, planted.LikesItWorse, ()),
    (checks_gates.check_worse_score_never_helps, planted.JudgesTheFavourableEnd, ()),
    (checks_gates.check_weaker_promise_never_helps, planted.WaivesForEverybody, ()),
    (checks_gates.check_fails_closed, planted.passes_by_majority, ()),
    (checks_gates.check_fails_closed, planted.refuses_everything, ()),
]
TAKES_A_TYPE = (
    checks.check_named_alike,
    checks.check_documented,
    checks.check_parameters_are_checked,
)


def name_of(value: Any) -> str:
    return getattr(value, "__name__", type(value).__name__)


@pytest.mark.parametrize(
    ("check", "bug", "arguments"), BUGS, ids=[f"{c.__name__}-{name_of(b)}" for c, b, _ in BUGS]
)
def test_check_finds(check, bug, arguments, request: pytest.FixtureRequest):
    if isinstance(bug, type) and check not in TAKES_A_TYPE:
        bug = bug()
    elif check is checks.check_documented:
        bug = type(bug)
    given = [request.getfixturevalue(a) if a == "tmp_path" else a for a in arguments]
    with pytest.raises(AssertionError):
        check(bug, *given)


def test_bad_input_check_lets_no_foreign_error_through():
    with pytest.raises(ValueError, match="infs or NaNs"):
        checks.check_bad_input(bad.RaisesItsOwnError(), table(), "?")


def test_every_check_has_a_bug():
    modules = (checks, checks_attacks, checks_draws, checks_metrics, checks_gates)
    found = {
        function
        for module in modules
        for name, function in vars(module).items()
        if name.startswith("check_") and function.__module__ == module.__name__
    }
    assert found == {check for check, _, _ in BUGS}


def test_the_sound_sanitizer_behind_the_bugs_passes():
    checks.check_input_untouched(bad.Planted())
    checks.check_steps_hold_no_state(bad.Planted())
    checks.check_declared_shape(bad.Planted())
    checks.check_verbatim_within_law(bad.Planted())
    checks.check_promise(bad.Planted())


def test_a_new_key_without_a_case_is_noticed():
    with pytest.raises(AssertionError):
        checks.check_named_alike(SANITIZERS["pca_laplace"], "pca_laplace", {})


def test_an_attack_that_its_weak_release_hides_from_fails():
    with pytest.raises(AssertionError):
        checks_attacks.check_breaks_weak_release(KnownPairs(), "silence")
