"""What every attack must do. Each check takes one and raises AssertionError."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import numpy as np
from scipy.special import bdtrc

from ppdm_core.attacks import Attack
from ppdm_core.audit.evaluators import EVALUATORS
from ppdm_core.audit.self_test.leaks import LEAKS
from ppdm_core.audit.self_test.trial import find_headline_metric
from ppdm_core.model.attacker import ColumnKind, Estimate
from ppdm_core.model.errors import NotApplicable
from tests.contract.weak_releases import (
    EPSILON,
    WeakTrial,
    list_arrays,
    make_trial,
    make_weak_trial,
    plant_noise,
    plant_weak_release,
    remove_need,
)

MIN_SUCCESS = 0.9
FALSE_ALARM = 1e-6
SEEDS = range(3)


def run_attack(attack: Attack, setting: WeakTrial, seed: int = 0) -> Estimate:
    return attack.attack(setting.view, np.random.default_rng(seed))


def measure_success(attack: Attack, setting: WeakTrial) -> tuple[float, float, int]:
    """Return the success of the best candidate, the baseline, and the number of records."""
    outcome = setting.trial.make_outcome(attack.goal, run_attack(attack, setting))
    metric = find_headline_metric(attack.goal)
    evaluator = EVALUATORS[attack.goal](metric, setting.trial.truth, [outcome], EPSILON)
    found = {name: evaluator.values(name)[0] for name in evaluator.names}
    best = max(found, key=found.__getitem__)
    return found[best], evaluator.baseline(best), evaluator.n(best)


def check_breaks_weak_release(attack: Attack, weak: str) -> None:
    for seed in SEEDS:
        success, baseline, _ = measure_success(attack, make_weak_trial(attack, weak, seed))
        assert success >= MIN_SUCCESS, (
            f"it recovers {success:.0%}, ignoring the release {baseline:.0%}"
        )
        assert success > baseline + 0.3, f"ignoring the release does {baseline:.0%} already"


def make_unrelated_trial(attack: Attack, weak: str, seed: int) -> WeakTrial:
    """Return a release of the same kind that is made from other records altogether."""
    planted, other = (plant_weak_release(attack, weak, number) for number in (seed, seed + 1000))
    if len(planted.Y) != len(other.Y):
        rows = np.random.default_rng(seed).integers(0, len(other.Y), len(planted.Y))
        return make_trial(attack, replace(planted, Y=other.Y[rows]), seed)
    return make_trial(attack, replace(planted, Y=other.Y, earlier=other.earlier), seed)


def check_gets_nothing_from_noise(attack: Attack, weak: str) -> None:
    """On a release that is independent of the records it is no better than the baseline."""
    for seed in SEEDS:
        try:
            setting = make_trial(attack, plant_noise(attack, seed), seed)
            success, baseline, n = measure_success(attack, setting)
        except NotApplicable:  # the attack is against another kind of release
            setting = make_unrelated_trial(attack, weak, seed)
            success, baseline, n = measure_success(attack, setting)
        if attack.goal == "member":  # the area under the curve has a deviation of about this
            assert abs(success - 0.5) < 5 / np.sqrt(3 * n), f"an area of {success:.2f} from noise"
            continue
        count = round(success * n)
        chance = bdtrc(count - 1, n, max(baseline, 1 / n)) if count else 1.0
        assert chance > FALSE_ALARM, f"it recovers {success:.0%} from noise"


def check_needs_are_checked(attack: Attack, weak: str) -> None:
    view = make_weak_trial(attack, weak).view
    assert attack.needs, "every attack needs something"
    for need in sorted(attack.needs):
        message = ""
        try:
            attack.attack(remove_need(view, need), np.random.default_rng(0))
        except NotApplicable as why:
            message = str(why)
        assert message, f"it ran without {need}"
        assert attack.name in message, f"{message} does not name the attack"
        assert message.endswith("."), f"not a sentence: {message}"


def check_view_untouched(attack: Attack, weak: str) -> None:
    """It runs on read-only arrays, and leaves writable ones as they are."""
    for writable in (True, False):
        view = make_weak_trial(attack, weak).view
        before = {name: array.copy() for name, array in list_arrays(view).items()}
        for array in list_arrays(view).values():
            if array.base is None:
                array.flags.writeable = writable
        try:
            estimate = attack.attack(view, np.random.default_rng(0))
        except ValueError as error:
            raise AssertionError(f"it writes to its view: {error}") from None
        after = list_arrays(view)
        changed = [name for name in before if after[name].tobytes() != before[name].tobytes()]
        assert not changed, f"it wrote to {changed}"
        for name, candidate in estimate.candidates.items():
            shared = any(np.shares_memory(candidate, array) for array in after.values())
            assert not shared, f"its candidate {name} is the view itself"


def expect_shape(attack: Attack, setting: WeakTrial, candidate: np.ndarray) -> tuple[int, ...]:
    """Return the shape of a candidate that the attack's goal asks for."""
    view = setting.view
    assert view.targets is not None
    (m, _), d = view.Y.shape, len(view.schema.numeric)
    c, t = len(view.schema.categorical), view.targets.n
    return {
        "reconstruct": (m, d),
        "norms": (m,),
        "link": (t,),
        "source": (m, *candidate.shape[1:2]),
        "member": (t,),
        "infer": (t, d + c),
        "pair": (t,),
        "single_out": (len(candidate), d + c + 1, 2),
    }[attack.goal]


def check_candidates_have_their_shape(attack: Attack, weak: str) -> None:
    setting = make_weak_trial(attack, weak)
    estimate = run_attack(attack, setting)
    assert estimate.candidates, "it has no candidate"
    view = setting.view
    assert view.targets is not None
    last = {"link": len(view.Y), "source": view.targets.n, "pair": view.targets.n}
    for name, candidate in estimate.candidates.items():
        expected = expect_shape(attack, setting, candidate)
        assert candidate.shape == expected, f"{name} is {candidate.shape}, not {expected}"
        assert candidate.size, f"{name} is empty"
        if attack.goal in last:
            assert np.issubdtype(candidate.dtype, np.integer), f"{name} holds no positions"
            assert candidate.min() >= -1, f"{name} points before the first one"
            assert candidate.max() < last[attack.goal], f"{name} points behind the last one"
        elif attack.goal == "single_out":
            assert not np.isnan(candidate).any(), f"{name} holds no intervals"
        else:
            assert np.isfinite(candidate).all(), f"{name} holds values that are not finite"
    for name, claim in estimate.claims.items():
        assert name in estimate.candidates, f"a claim for {name}, which is no candidate"
        assert ((claim >= 0) & (claim <= 1)).all(), f"{name} claims what is no probability"


def check_row_order_does_not_matter(attack: Attack, weak: str) -> None:
    """Shuffled rows give shuffled estimates: the position of a row is not used."""
    setting = make_weak_trial(attack, weak)
    order = np.random.default_rng(5).permutation(len(setting.trial.shuffle))
    trial = replace(setting.trial, shuffle=setting.trial.shuffle[order])
    plain, shuffled = (
        one.trial.make_outcome(attack.goal, run_attack(attack, one)).candidates
        for one in (setting, replace(setting, trial=trial))
    )
    for name, candidate in plain.items():
        if attack.goal in ("link", "pair", "source"):
            # Rounding, which depends on the BLAS kernel, decides between assignments of equal cost.
            same = np.mean(shuffled[name] == candidate) >= 0.98
        elif attack.goal == "infer":  # rounding decides which of two equally near rows is used
            same = np.mean(np.isclose(shuffled[name], candidate, atol=1e-6)) > 0.999
        elif attack.goal == "single_out":
            same = np.allclose(np.sort(shuffled[name], axis=0), np.sort(candidate, axis=0))
        else:
            same = np.allclose(shuffled[name], candidate, atol=1e-6)
        assert same, f"its candidate {name} depends on the order of rows"


def check_repeats(attack: Attack, weak: str) -> None:
    """The generator that is handed in is its only randomness."""
    np.random.seed(1)
    before = repr(np.random.get_state())
    one, two = (run_attack(attack, make_weak_trial(attack, weak)).candidates for _ in range(2))
    assert repr(np.random.get_state()) == before, "it moved numpy's global generator"
    assert list(one) == list(two), "it offers other candidates the second time"
    for name, candidate in one.items():
        assert np.array_equal(candidate, two[name]), f"{name} differs with the same generator"


def check_has_story(attack: Attack) -> None:
    assert attack.goal in EVALUATORS, f"unknown goal {attack.goal}"
    for story in filter(None, (attack.story, attack.file_story)):
        assert story.endswith("."), "its story is no sentence"
        assert story.format(k=40), "its story has a field that is not filled"
    assert attack.story, "it has no story"
    assert type(attack).__doc__, "it has no docstring"
    assert "References:" in (type(attack).__doc__ or ""), "its docstring names no source"


def check_declarations(attack: Attack) -> None:
    """Check that the class declares what the audit asks it for, with the right types."""
    assert type(attack.reads) is frozenset, f"reads is {attack.reads!r}, not a frozenset"
    assert attack.reads, "it reads no columns"
    assert attack.reads <= set(get_args(ColumnKind)), f"it reads {set(attack.reads)}"
    assert type(attack.in_every_audit) is bool, f"in_every_audit is {attack.in_every_audit!r}"
    assert isinstance(attack.must_notice, Mapping), f"must_notice is {attack.must_notice!r}"
    for leak, share in attack.must_notice.items():
        assert leak in LEAKS, f"no leak is called {leak!r}"
        assert type(share) is float, f"the share of {leak} is {share!r}, not a float"
        assert 0.0 < share <= 1.0, f"the share of {leak} is {share}"
