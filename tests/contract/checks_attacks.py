"""What every attack must do. Each check takes one and raises AssertionError."""

from __future__ import annotations

import numpy as np
from scipy.special import bdtrc

from ppdm_core.errors import NotApplicable
from ppdm_core.metrics import METRICS, column_mean_guess
from ppdm_core.types import Attack, Estimate
from tests.contract.scenes import Scene, arrays, permuted, scene, without

SUCCESS = 0.9
FALSE_ALARM = 1e-6
SEEDS = range(3)


def played(attack: Attack, setting: Scene, seed: int = 0) -> Estimate:
    return attack.attack(setting.view, np.random.default_rng(seed))


def hits(attack: Attack, setting: Scene) -> tuple[float, float]:
    """Success of the best candidate, and of somebody who ignores the release."""
    candidates = played(attack, setting).candidates
    if attack.goal == "link":
        rate = METRICS["rate"]
        found = [rate.measure(link, setting.targets) for link in candidates.values()]
        return max(found), rate.baseline(len(setting.X))
    breach, rows = METRICS["breach_rate"], setting.others
    schema, epsilon = setting.view.schema, setting.view.epsilon

    def recovered(X_hat: np.ndarray) -> float:
        return breach.measure(setting.X[rows], X_hat[rows], schema, epsilon)

    return max(map(recovered, candidates.values())), recovered(column_mean_guess(setting.X))


def check_breaks_weak_release(attack: Attack, weak: str) -> None:
    for seed in SEEDS:
        success, baseline = hits(attack, scene(weak, seed))
        assert success >= SUCCESS, f"it recovers {success:.0%}, ignoring the release {baseline:.0%}"


def check_gets_nothing_from_noise(attack: Attack) -> None:
    """On a release that tells nothing it does no better than somebody who ignores it."""
    for seed in SEEDS:
        setting = scene("independent noise", seed)
        success, baseline = hits(attack, setting)
        n = len(setting.others)
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
        setting = scene(weak)
        held = arrays(setting.view)
        for array in held.values():
            array.flags.writeable = writable
        before = {name: array.tobytes() for name, array in held.items()}
        try:
            estimate = played(attack, setting)
        except ValueError as error:
            raise AssertionError(f"it writes to its view: {error}") from None
        changed = [name for name, array in held.items() if array.tobytes() != before[name]]
        assert not changed, f"it wrote to {changed}"
        for name, answer in estimate.candidates.items():
            shared = any(np.shares_memory(answer, array) for array in held.values())
            assert not shared, f"its candidate {name} is the view itself"


def check_answers_have_their_shape(attack: Attack, weak: str) -> None:
    setting = scene(weak)
    estimate = played(attack, setting)
    assert estimate.candidates, "it answers nothing"
    n, d = setting.X.shape
    for name, answer in estimate.candidates.items():
        if attack.goal == "link":
            assert answer.shape == setting.targets.shape, f"{name} has shape {answer.shape}"
            assert np.issubdtype(answer.dtype, np.integer), f"{name} holds no row numbers"
            assert answer.min() >= -1, f"{name} points before the first row"
            assert answer.max() < n, f"{name} points behind the last row"
        else:
            assert answer.shape == (n, d), f"{name} has shape {answer.shape}"
            assert np.isfinite(answer).all(), f"{name} holds values that are not finite"
    for name, claim in estimate.claims.items():
        assert name in estimate.candidates, f"a claim for {name}, which is no candidate"
        assert ((claim >= 0) & (claim <= 1)).all(), f"{name} claims what is no probability"


def check_row_order_tells_nothing(attack: Attack, weak: str) -> None:
    """Shuffled rows give shuffled answers: nothing is taken from where a row stands."""
    setting = scene(weak)
    order = np.random.default_rng(5).permutation(len(setting.X))
    plain = played(attack, setting).candidates
    view = permuted(setting.view, order)
    shuffled = attack.attack(view, np.random.default_rng(0)).candidates
    for name, answer in plain.items():
        if attack.goal == "link":
            same = np.array_equal(order[shuffled[name]], answer)
        else:
            same = np.allclose(shuffled[name], answer[order], atol=1e-6)
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
    assert attack.goal in ("reconstruct", "link"), f"unknown goal {attack.goal}"
    assert attack.story.endswith("."), "its story is no sentence"
    assert attack.story.format(k=40), "its story has a hole that nobody fills"
    assert type(attack).__doc__, "it has no docstring"
    assert "References:" in (type(attack).__doc__ or ""), "its docstring names no source"
