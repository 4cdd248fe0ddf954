from __future__ import annotations

from pathlib import Path

import pytest

from flows.config.release_file import ReleaseFile, load
from ppdm_core.model.errors import BadInput
from tests.flows.config.test_release_file import changed

POLICY = """
[attacker]
known_records = 30
epsilon = 0.1

[audit]
required = ["membership"]
shadow_draws = 4

[limits]
"known_pairs.breach_rate" = { value = 0.1, set_by = "hospital", reason = "1 in 10" }
"membership.true_positive_rate" = { value = 0.1, set_by = "hospital", reason = "1 in 10" }
"amplification.record".value = 2000
"amplification.record".set_by = "hospital"
"amplification.record".waive = ["random_rotation"]
"""


def name_policy(folder: Path, text: str = POLICY, *changes: tuple[str, str]) -> Path:
    """Write a policy, and a release file that names it, with changes to the latter."""
    (folder / "hospital.toml").write_text(text)
    path = changed(folder, "format = 1", 'format = 1\npolicy = "hospital.toml"')
    for old, new in changes:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    return path


def test_load_shared_policy_demands_hold(tmp_path: Path) -> None:
    file = load(name_policy(tmp_path))
    policy = file.build_policy()
    assert policy.limits["membership.true_positive_rate"].set_by == "hospital"
    assert "membership" in policy.required and "known_pairs" in policy.required
    assert policy.shadow_draws == 4
    assert policy.attacker.known_records >= 30
    assert len(file.policy_digest) == 64


def test_load_shared_policy_read_again_same_file(tmp_path: Path) -> None:
    file = load(name_policy(tmp_path))
    assert ReleaseFile.model_validate(file.model_dump(mode="json")) == file


def test_digest_shared_policy_changed_other_release(tmp_path: Path) -> None:
    before = load(name_policy(tmp_path)).digest
    after = load(name_policy(tmp_path, POLICY + "# the same limits\n")).digest
    assert before != after


WEAK = {
    "limit": (("value = 0.1", "value = 0.2"), "'known_pairs.breach_rate' is weaker"),
    "review": (("value = 0.1", "review = 0.1, value = 0.1"), None),
    "absolute": (("value = 0.1", "absolute = true, value = 0.01"), "is weaker"),
    "attacker": (("known_records = 40", "known_records = 29"), "'known_records' key"),
    "waiver": (('"random_rotation"]', '"random_rotation", "pca_laplace"]'), "is weaker"),
    "amplification": (("value = 1100", "value = 3000"), "'amplification.record' is weaker"),
    "draws": (("[audit]", "[audit]\nshadow_draws = 3"), "'shadow_draws' key of [audit]"),
    "effort": (("[audit]", '[audit]\neffort = "quick"'), "'effort' key of [audit]"),
}


@pytest.mark.parametrize("name", WEAK)
def test_load_weaker_than_shared_policy_bad_input(tmp_path: Path, name: str) -> None:
    change, words = WEAK[name]
    path = name_policy(tmp_path, POLICY, change)
    if words is None:
        load(path)
        return
    with pytest.raises(BadInput) as caught:
        load(path)
    assert words in str(caught.value) and "hospital.toml" in str(caught.value)


def test_load_stricter_than_shared_policy_accepted(tmp_path: Path) -> None:
    file = load(name_policy(tmp_path, POLICY, ("value = 0.1,", "value = 0.05,")))
    assert file.build_policy().limits["known_pairs.breach_rate"].value == 0.05


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("not toml", "hospital.toml"),
        ("[limits]\nx = { value = 1 }", "In the policy file hospital.toml"),
    ],
)
def test_load_bad_shared_policy_bad_input(tmp_path: Path, text: str | None, words: str) -> None:
    path = name_policy(tmp_path, text or "")
    if text is None:
        (tmp_path / "hospital.toml").unlink()
    with pytest.raises(BadInput, match=words):
        load(path)


def test_load_policy_digest_in_file_bad_input(tmp_path: Path) -> None:
    path = changed(tmp_path, "format = 1", 'format = 1\npolicy_digest = "0"')
    with pytest.raises(BadInput, match="'policy_digest'"):
        load(path)
