"""Each check of the contract must find the bugs that are planted for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.gates.amplification import Amplification
from ppdm_core.gates.required_audits import RequiredAudits
from ppdm_core.sanitizers import SANITIZERS
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.contract import broken_plugins as plugins
from tests.contract import broken_sanitizers as sanitizers
from tests.contract import (
    cases,
    checks,
    checks_attacks,
    checks_draws,
    checks_gates,
    checks_intervals,
    checks_metrics,
)
from tests.support.tables import make_rows, make_table

WEAK = "components"
QUOTED = str(1.0)  # the largest scaled value

# (check, what it is given, further arguments); a type is made first.
BUGS: list[tuple[Callable[..., None], Any, tuple[Any, ...]]] = [
    (checks.check_input_untouched, sanitizers.WritesItsInput, ()),
    (checks.check_same_key_same_output, sanitizers.DrawsAnotherKey, ()),
    (checks.check_keys_matter, sanitizers.IgnoresItsKey, ()),
    (checks.check_global_state_unmoved, sanitizers.MovesGlobalState, ()),
    (checks.check_global_state_unmoved, sanitizers.ReadsGlobalState, ()),
    (checks.check_storage_does_not_matter, sanitizers.FitsTheFirstChunk, ("tmp_path",)),
    (checks.check_storage_does_not_matter, sanitizers.CountsWithinParts, ("tmp_path",)),
    (checks.check_steps_hold_no_state, sanitizers.NumbersItsBlocks, ()),
    (checks.check_steps_hold_no_state, sanitizers.NumbersItsCounts, ()),
    (checks.check_steps_hold_no_state, sanitizers.CountsOutsideTheBlock, ()),
    (checks.check_declared_shape, sanitizers.ReleasesNan, ()),
    (checks.check_declared_shape, sanitizers.LosesARow, ()),
    (checks.check_declared_shape, sanitizers.SwapsRows, ()),
    (checks.check_declared_shape, sanitizers.DeclaresOtherColumns, ()),
    (checks.check_declared_shape, sanitizers.PublishesAnotherName, ()),
    (checks.check_declared_shape, sanitizers.HidesCategories(gamma={"attribute": 3}), ()),
    (checks.check_verbatim_within_chance, sanitizers.ReturnsRowsVerbatim, ()),
    (checks.check_verbatim_within_chance, sanitizers.ReturnsSomeRowsVerbatim, ()),
    (checks.check_verbatim_within_chance, sanitizers.ForgetsSomeNoise, ()),
    (
        checks.check_verbatim_within_chance,
        sanitizers.KeepsCategories(gamma={"attribute": 3}),
        (),
    ),
    (checks.check_bad_input, sanitizers.ReleasesNan, (make_table(), "?")),
    (
        checks.check_bad_input,
        sanitizers.QuotesAValue,
        (make_rows(make_table().whole.X * 1e9), QUOTED),
    ),
    (checks.check_bad_input, sanitizers.SaysNoSentence, (make_table(), "?")),
    (
        checks.check_more_noise_more_distortion,
        sanitizers.make_sound(),
        (sanitizers.IgnoresItsLevel(b=1.2),),
    ),
    (checks.check_more_noise_more_distortion, PcaLaplace(b=1.2), (PcaLaplace(b=0.3),)),
    (checks.check_advice_reveals_less, sanitizers.AdvisesLess(), (PcaLaplace(b=1.2),)),
    (checks.check_advice_reveals_less, sanitizers.AdvisesNothing(), (PcaLaplace(b=1.2),)),
    (checks.check_unchanged_records_keep_their_bytes, sanitizers.CentresEachBlock, ()),
    (checks.check_unchanged_records_keep_their_bytes, sanitizers.KeysByPosition, ()),
    (checks_draws.check_every_draw_has_a_name, sanitizers.ChargesByItsFirstColumn, ()),
    (checks_draws.check_every_draw_has_a_name, sanitizers.ChargesByTheTable, ()),
    (checks_draws.check_charges_add_up, sanitizers.ChargesHalf, ()),
    (checks.check_guarantee, sanitizers.PromisesWithoutBound, ()),
    (checks.check_guarantee, sanitizers.PromisesInfinity, ()),
    (checks.check_guarantee, sanitizers.PromisesLessThanItsPart, ()),
    (checks.check_guarantee, sanitizers.PromisesOnNothing, ()),
    (checks.check_weaker_promises_named, sanitizers.PromisesUnconditionally, ()),
    (checks.check_weaker_promises_named, sanitizers.HidesItsConditions, ()),
    (checks.check_documented, sanitizers.Sound(), ()),
    (checks.check_documented, sanitizers.BrokenByUnknownAttack(), ()),
    (checks.check_documented, sanitizers.HidesAParameter(), ()),
    (checks.check_parameters_are_checked, sanitizers.TakesWhatItGets, ()),
    (checks.check_parameters_are_checked, sanitizers.TakesAnything, ()),
    (checks.check_named_alike, PcaLaplace, ("pca", cases.SANITIZERS)),
    (checks.check_named_alike, PcaLaplace, ("pca_laplace", {"random_rotation": 1})),
    (checks.check_named_alike, sanitizers.Sound, ("pca_laplace", cases.SANITIZERS)),
    *(
        (
            checks_attacks.check_breaks_weak_release,
            plugins.IgnoresTheRelease(ATTACKS[key]),
            (weak,),
        )
        for key, weak in cases.ATTACKS.items()
    ),
    (checks_attacks.check_breaks_weak_release, plugins.LinksByPosition, (WEAK,)),
    (checks_attacks.check_gets_nothing_from_noise, plugins.KnowsTheTruth, (WEAK,)),
    (checks_attacks.check_needs_are_checked, plugins.RunsWithoutItsNeeds, (WEAK,)),
    (checks_attacks.check_view_untouched, plugins.WritesToItsView, (WEAK,)),
    (checks_attacks.check_view_untouched, plugins.SortsItsTargets, (WEAK,)),
    (checks_attacks.check_view_untouched, plugins.ReturnsItsView, (WEAK,)),
    (checks_attacks.check_candidates_have_their_shape, plugins.EstimatesTooFew, (WEAK,)),
    (checks_attacks.check_candidates_have_their_shape, plugins.EstimatesNan, (WEAK,)),
    (
        checks_attacks.check_candidates_have_their_shape,
        plugins.PointsBehindTheTable,
        (WEAK,),
    ),
    (checks_attacks.check_row_order_does_not_matter, plugins.LinksByPosition, (WEAK,)),
    (checks_attacks.check_repeats, plugins.UsesGlobalNumpy, (WEAK,)),
    (checks_attacks.check_has_story, plugins.HasNoStory, ()),
    (checks_attacks.check_declarations, plugins.NoticesUnknownLeak, ()),
    (checks_attacks.check_declarations, plugins.NoticesByPercent, ()),
    (checks_attacks.check_declarations, plugins.ReadsUnknownColumns, ()),
    (checks_metrics.check_inside_bounds, plugins.ScoresAboveOne, ()),
    (checks_metrics.check_inside_bounds, plugins.ScoresNan, ()),
    (checks_metrics.check_copy_is_extreme, plugins.ScoresAboveOne, (2.0,)),
    (checks_metrics.check_copy_is_extreme, plugins.ScoresUpsideDown, (0.0,)),
    (checks_metrics.check_noise_differs_from_copy, plugins.ScoresAllReleasesEqually, ()),
    (checks_metrics.check_noise_differs_from_copy, plugins.ScoresUpsideDown, ()),
    (checks_metrics.check_nan_refused, plugins.SkipsNan, ()),
    (checks_metrics.check_nan_refused, plugins.CountsNanAsMiss, ()),
    (checks_metrics.check_bad_shapes_refused, plugins.ScoresWhatItGets, ()),
    (checks_metrics.check_more_noise_is_worse, plugins.PrefersNoise, ()),
    (checks_metrics.check_deterministic, plugins.ScoresAtRandom, ()),
    (checks_metrics.check_deterministic, plugins.ForgetsThePart, ()),
    (checks_metrics.check_sentence, plugins.HasSentenceWithoutFigures, ()),
    (checks_metrics.check_capabilities, plugins.DeclaresFlagAsText, ()),
    (checks_metrics.check_capabilities, plugins.DeclaresNoInterval, ()),
    (checks_intervals.check_mean_of_each, plugins.AveragesSomethingElse, ()),
    (checks_intervals.check_interval_covers, plugins.BelievesWhatItSaw, ()),
    (checks_intervals.check_interval_covers, plugins.CountsAllPairs, ()),
    (checks_intervals.check_interval_covers, plugins.TrustsItsQuantiles, ()),
    (checks_intervals.check_interval_covers, plugins.ForgetsThePart, ()),
    (checks_gates.check_passes_good_input, plugins.RefusesAlways, ()),
    (checks_gates.check_passes_good_input, plugins.HasNoFinding, ()),
    (checks_gates.check_refuses, plugins.PassesNan, ("value is NaN",)),
    (checks_gates.check_refuses, plugins.PassesNan, ("high is infinite",)),
    (checks_gates.check_refuses, plugins.PassesAlways, ("empty report",)),
    (checks_gates.check_refuses, RequiredAudits, ("value is NaN",)),
    (checks_gates.check_refuses, Amplification, ("required audit failed",)),
    (checks_gates.check_findings_have_reasons, plugins.GivesNoReason, ()),
    (checks_gates.check_worse_score_never_helps, plugins.PrefersWorseScores, ()),
    (checks_gates.check_worse_score_never_helps, plugins.JudgesTheFavourableEnd, ()),
    (checks_gates.check_weaker_guarantee_never_helps, plugins.WaivesEveryMethod, ()),
    (checks_gates.check_fails_closed, plugins.decide_by_majority, ()),
    (checks_gates.check_fails_closed, plugins.refuse_everything, ()),
]
TAKES_A_TYPE = (
    checks.check_named_alike,
    checks.check_documented,
    checks.check_parameters_are_checked,
)


def get_name(value: Any) -> str:
    return getattr(value, "__name__", type(value).__name__)


@pytest.mark.parametrize(
    ("check", "bug", "arguments"), BUGS, ids=[f"{c.__name__}-{get_name(b)}" for c, b, _ in BUGS]
)
def test_check_planted_bug_found(check, bug, arguments, request: pytest.FixtureRequest):
    if isinstance(bug, type) and check not in TAKES_A_TYPE:
        bug = bug()
    elif check is checks.check_documented:
        bug = type(bug)
    given = [request.getfixturevalue(a) if a == "tmp_path" else a for a in arguments]
    with pytest.raises(AssertionError):
        check(bug, *given)


def test_check_bad_input_foreign_error_passed_on():
    with pytest.raises(ValueError, match="infs or NaNs"):
        checks.check_bad_input(sanitizers.RaisesItsOwnError(), make_table(), "?")


def test_checks_each_has_a_bug():
    modules = (
        checks,
        checks_attacks,
        checks_draws,
        checks_metrics,
        checks_intervals,
        checks_gates,
    )
    found = {
        function
        for module in modules
        for name, function in vars(module).items()
        if name.startswith("check_") and function.__module__ == module.__name__
    }
    assert found == {check for check, _, _ in BUGS}


def test_checks_sound_sanitizer_passes():
    checks.check_input_untouched(sanitizers.Sound())
    checks.check_steps_hold_no_state(sanitizers.Sound())
    checks.check_declared_shape(sanitizers.Sound())
    checks.check_verbatim_within_chance(sanitizers.Sound())
    checks.check_guarantee(sanitizers.Sound())


def test_check_named_alike_key_without_case_fails():
    with pytest.raises(AssertionError):
        checks.check_named_alike(SANITIZERS["pca_laplace"], "pca_laplace", {})


def test_check_breaks_weak_release_hidden_records_fails():
    """A few verbatim rows among noise are too few to be called broken."""
    with pytest.raises(AssertionError):
        checks_attacks.check_breaks_weak_release(RecordLinkage(), "verbatim rows")
