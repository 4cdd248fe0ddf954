"""What every attack must do. Each check takes one and raises AssertionError."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import bdtrc

from ppdm_core.audit.evaluators import EVALUATORS, GOALS_WITH_OUTSIDERS
from ppdm_core.audit.self_test.trial import find_headline_metric
from ppdm_core.model.attacker import Attack, Estimate
from ppdm_core.model.errors import NotApplicable
from tests.contract.scenes import (
    EPSILON,
    Scene,
    arrays,
    half,
    independent_noise,
    scene,
    staged,
    without,
)

SUCCESS = 0.9
FALSE_ALARM = 1e-6
SEEDS = range(3)


def played(attack: Attack, setting: Scene, seed: int = 0) -> Estimate:
    return attack.attack(setting.view, np.random.default_rng(seed))


def hits(attack: Attack, setting: Scene) -> tuple[float, float, int]:
    """Success of the best candidate, of somebody who ignores the release, and of how many."""
    one = setting.stage.make_outcome(attack.goal, played(attack, setting))
    scorer = EVALUATORS[attack.goal](setting.stage.truth, [one], EPSILON, "")
    metric = find_headline_metric(attack.goal)
    found = {name: scorer.values(metric, name)[0] for name in scorer.names}
    best = max(found, key=found.__getitem__)
    return found[best], scorer.baseline(metric, best), scorer.n(best)


def check_breaks_weak_release(attack: Attack, weak: str) -> None:
    for seed in SEEDS:
        success, baseline, _ = hits(attack, scene(weak, seed))
        assert success >= SUCCESS, f"it recovers {success:.0%}, ignoring the release {baseline:.0%}"
        assert success > baseline + 0.3, f"ignoring the release does {baseline:.0%} already"


def silent(attack: Attack, weak: str, seed: int) -> Scene:
    """A release of the same kind that tells nothing: made from other people altogether."""
    true, other = scene(weak, seed), scene(weak, seed + 1000)
    if len(true.weak.Y) != len(other.weak.Y):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, len(other.weak.Y), len(true.weak.Y))
        return staged(replace(true.weak, Y=other.weak.Y[rows]), seed)
    weak_ = true.weak
    earlier = tuple(other.weak.earlier)
    return staged(replace(weak_, Y=other.weak.Y, earlier=earlier, C=other.weak.C), seed)


def check_gets_nothing_from_noise(attack: Attack, weak: str) -> None:
    """On a release that tells nothing it does no better than somebody who ignores it."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        noise = independent_noise(rng)
        if attack.goal in GOALS_WITH_OUTSIDERS:
            noise = half(noise, rng)
        try:
            success, baseline, n = hits(attack, staged(noise, seed))
        except NotApplicable:  # this kind of release is not what it is against
            success, baseline, n = hits(attack, silent(attack, weak, seed))
        if attack.goal == "member":  # the area under the curve has a deviation of about this
            assert abs(success - 0.5) < 5 / np.sqrt(3 * n), f"an area of {success:.2f} from nothing"
            continue
        count = round(success * n)
        chance = bdtrc(count - 1, n, max(baseline, 1 / n)) if count else 1.0
        assert chance > FALSE_ALARM, f"it recovers {success:.0%} of what is not there"


def check_needs_are_checked(attack: Attack, weak: str) -> None:
    view = scene(weak).view
    assert attack.needs, "every attack needs something"
    for need in sorted(attack.needs):
        told = ""
        try:
            attack.attack(without(view, need), np.random.default_rng(0))
        except NotApplicable as why:
            told = str(why)
        assert told, f"it ran without {need}"
        assert attack.name in told, f"{told} does not name the attack"
        assert told.endswith("."), f"not a sentence: {told}"


def check_view_untouched(attack: Attack, weak: str) -> None:
    """It runs on read-only arrays, and leaves writable ones as they are."""
    for writable in (True, False):
        view = scene(weak).view
        held = {name: array.copy() for name, array in arrays(view).items()}
        for array in arrays(view).values():
            if array.base is None:
                array.flags.writeable = writable
        try:
            estimate = attack.attack(view, np.random.default_rng(0))
        except ValueError as error:
            raise AssertionError(f"it writes to its view: {error}") from None
        now = arrays(view)
        changed = [name for name in held if now[name].tobytes() != held[name].tobytes()]
        assert not changed, f"it wrote to {changed}"
        for name, answer in estimate.candidates.items():
            shared = any(np.shares_memory(answer, array) for array in now.values())
            assert not shared, f"its candidate {name} is the view itself"


def shape_of(attack: Attack, setting: Scene, answer: np.ndarray) -> tuple[int, ...]:
    view = setting.view
    assert view.targets is not None
    (m, _), d = view.Y.shape, len(view.schema.numeric)
    c, t = len(view.schema.categorical), view.targets.n
    return {
        "reconstruct": (m, d),
        "norms": (m,),
        "link": (t,),
        "source": (m, *answer.shape[1:2]),
        "member": (t,),
        "infer": (t, d + c),
        "pair": (t,),
        "single_out": (len(answer), d + c + 1, 2),
    }[attack.goal]


def check_answers_have_their_shape(attack: Attack, weak: str) -> None:
    setting = scene(weak)
    estimate = played(attack, setting)
    assert estimate.candidates, "it answers nothing"
    view = setting.view
    assert view.targets is not None
    last = {"link": len(view.Y), "source": view.targets.n, "pair": view.targets.n}
    for name, answer in estimate.candidates.items():
        assert answer.shape == shape_of(attack, setting, answer), f"{name} is {answer.shape}"
        assert answer.size, f"{name} is empty"
        if attack.goal in last:
            assert np.issubdtype(answer.dtype, np.integer), f"{name} holds no positions"
            assert answer.min() >= -1, f"{name} points before the first one"
            assert answer.max() < last[attack.goal], f"{name} points behind the last one"
        elif attack.goal == "single_out":
            assert not np.isnan(answer).any(), f"{name} holds no intervals"
        else:
            assert np.isfinite(answer).all(), f"{name} holds values that are not finite"
    for name, claim in estimate.claims.items():
        assert name in estimate.candidates, f"a claim for {name}, which is no candidate"
        assert ((claim >= 0) & (claim <= 1)).all(), f"{name} claims what is no probability"


def check_row_order_tells_nothing(attack: Attack, weak: str) -> None:
    """Shuffled rows give shuffled answers: nothing is taken from where a row stands."""
    setting = scene(weak)
    order = np.random.default_rng(5).permutation(len(setting.stage.draw.Y))
    stage = replace(setting.stage, shuffle=setting.stage.shuffle[order])
    moved = replace(setting, stage=stage)
    plain, shuffled = (
        one.stage.make_outcome(attack.goal, played(attack, one)).candidates
        for one in (setting, moved)
    )
    for name, answer in plain.items():
        if attack.goal in ("link", "pair", "source"):
            same = np.array_equal(shuffled[name], answer)
        elif attack.goal == "infer":  # a hair's breadth decides who is the last neighbour
            same = np.mean(np.isclose(shuffled[name], answer, atol=1e-6)) > 0.999
        elif attack.goal == "single_out":
            same = np.allclose(np.sort(shuffled[name], axis=0), np.sort(answer, axis=0))
        else:
            same = np.allclose(shuffled[name], answer, atol=1e-6)
        assert same, f"its candidate {name} depends on the order of rows"


def check_repeats(attack: Attack, weak: str) -> None:
    """The generator that is handed in is its only randomness."""
    np.random.seed(1)
    before = repr(np.random.get_state())
    one, two = (played(attack, scene(weak)).candidates for _ in range(2))
    assert repr(np.random.get_state()) == before, "it moved numpy's global generator"
    assert list(one) == list(two), "it offers other candidates the second time"
    for name, answer in one.items():
        assert np.array_equal(answer, two[name]), f"{name} differs with the same generator"


def check_tells_its_story(attack: Attack) -> None:
    assert attack.goal in EVALUATORS, f"unknown goal {attack.goal}"
    assert attack.story.endswith("."), "its story is no sentence"
    assert attack.story.format(k=40), "its story has a hole that nobody fills"
    assert type(attack).__doc__, "it has no docstring"
    assert "References:" in (type(attack).__doc__ or ""), "its docstring names no source"
