"""`ppdm methods` describes everything that is registered, and describes it correctly."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest

from flows.config.context import build_context
from flows.config.name_checks import check_names, read_registered_names
from flows.config.release_file import ReleaseFile
from ppdm.cli.methods import describe_methods, list_registries
from ppdm_core.attacks import ATTACKS
from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.gates import GATES
from ppdm_core.gates.amplification import Amplification
from ppdm_core.metrics import METRICS
from ppdm_core.metrics.rate import Rate
from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers import SANITIZERS
from ppdm_core.sanitizers.random_rotation import RandomRotation
from tasks.settings_check import check_settings

ROOT = Path(__file__).resolve().parents[3]
NAMES = [name for _, registry, _ in list_registries() for name in registry]
HEAVY = ("prefect", "mlflow", "great_expectations", "pandas", "duckdb", "scipy", "sklearn")


def read_text(name: str | None) -> str:
    return describe_methods(name).text


def block(name: str, title: str) -> dict[str, Any]:
    """A part of a page that can be pasted into a release file."""
    _, found = read_text(name).split(f"  [{title}]\n")
    return tomllib.loads(textwrap.dedent(found))


def release_file(sanitizer: dict[str, Any], limits: dict[str, Any]) -> ReleaseFile:
    """With two features of every kind that the method takes."""
    kinds = {
        "numeric": {"role": "feature", "type": "numeric", "low": 0, "high": 1},
        "categorical": {"role": "feature", "type": "categorical", "categories": ["a", "b"]},
    }
    accepts = sorted(SANITIZERS[sanitizer["method"]].accepts)
    features = {f"{kind}_{i}": kinds[kind] for kind in accepts for i in (1, 2)}
    word = {"role": "label", "type": "categorical", "categories": ["no", "yes"]}
    return ReleaseFile.model_validate(
        {
            "format": 1,
            "dataset": {"name": "t", "owner": "o", "audience": "a", "record_id": "who"},
            "source": {"kind": "csv", "path": "t.csv"},
            "columns": {"who": {"role": "identifier"}, **features, "z": word},
            "sanitizer": sanitizer,
            "audit": {"required": list(ATTACKS)},
            "limits": limits,
        }
    )


def test_registries_names_are_unique():
    assert len(NAMES) == len(set(NAMES))


def test_overview_all_names_within_width():
    result = describe_methods(None)
    for kind, registry, _ in list_registries():
        assert [entry["name"] for entry in result.payload[kind]] == list(registry)
    headings = [line.strip().split(":")[0] for line in result.text.splitlines()]
    assert [line for line in headings if line in NAMES] == NAMES
    assert max(map(len, result.text.splitlines())) <= 100


def test_overview_entry_has_main_facts():
    text = read_text(None)
    for words in (
        "Projects records on their leading principal components",
        "Guarantee: none. Two records of different length",
        "Broken by: `known_pairs` as soon as the known records span the space",
        "known_pairs: reconstruction\n    An insider knows some records",
        "Needs: known records, each with a released row of its own (known_records in [attacker])",
        "breach_rate: privacy, less is better, 0 to 1\n    Share of records recovered",
        "interval_privacy: privacy, more is better, 0 or more",
        "knn_accuracy: utility, more is better, 0 to 1",
    ):
        assert words in text, words


@pytest.mark.parametrize("name", NAMES)
def test_page_any_name_within_width_and_json(name: str):
    result = describe_methods(name)
    assert max(map(len, result.text.splitlines())) <= 100
    assert result.text.startswith(f"{name}: {result.payload['entry']['kind']}")
    assert "``" not in result.text and "**" not in result.text
    assert json.loads(json.dumps(result.payload, allow_nan=False)) == result.payload


@pytest.mark.parametrize("name", SANITIZERS)
def test_page_sanitizer_has_all_parts(name: str):
    cls, entry = SANITIZERS[name], describe_methods(name).payload["entry"]
    for section in ("what", "takes", "guarantee", "broken_by", "public", "references"):
        assert entry[section], section
    assert {each["name"] for each in entry["parameters"]} == {each.name for each in fields(cls)}
    assert all(each["meaning"] for each in entry["parameters"])


def test_page_parameters_show_defaults():
    text = read_text("pca_laplace")
    for words in ("b: not set\n", "basis_share: 0.2\n", 'noise_shape: "isotropic"\n'):
        assert f"    {words}" in text
    assert text.index("components: 0.5") < text.index('scale: "minmax"')


@pytest.mark.parametrize("name", SANITIZERS)
def test_page_examples_and_limits_are_valid(name: str):
    """One release file with the example of the method and every limit that a page shows."""
    limits: dict[str, Any] = {}
    for each in (*ATTACKS, *METRICS):
        if each in ATTACKS or METRICS[each].gateable:
            limits |= block(each, "limits")
    assert set(limits) >= {"known_pairs.breach_rate", "record_linkage.rate", "distance_loss"}
    limits["amplification.record"] = {"value": 1000, "set_by": "who", "reason": "why"}
    file = release_file(block(name, "sanitizer"), limits)
    check_names(file, read_registered_names())
    check_settings(build_context(file))


def test_page_screening_metric_has_no_limit():
    assert "For information only: a limit on it is not allowed." in read_text("closest_record")
    assert "[limits]" not in read_text("closest_record")


def test_page_limits_state_their_demand():
    page = read_text("known_pairs")
    assert '# at most 0.05 above the baseline\n  "known_pairs.breach_rate"' in page
    assert '# at most 0.05 below the baseline\n  "known_pairs.relative_error"' in page
    assert '# at least 0.5\n  "knn_accuracy"' in read_text("knn_accuracy")


@pytest.mark.parametrize("name", ATTACKS)
def test_page_attack_has_all_parts(name: str):
    entry = describe_methods(name).payload["entry"]
    assert entry["story"].endswith(".") and "{" not in entry["story"]
    assert entry["needs"] and entry["references"]
    assert entry["measured_by"] == [m.name for m in METRICS.values() if m.goal == entry["goal"]]


def test_page_attack_and_method_name_each_other():
    assert "`known_pairs`" in describe_methods("random_rotation").payload["entry"]["broken_by"]
    assert "random_rotation" in describe_methods("known_pairs").payload["entry"]["breaks"]


@dataclass(frozen=True, kw_only=True)
class Turning(RandomRotation):
    """Turns.

    **Parameters**:
    ``angle``: how far it
    turns.

    **Public**: nothing.
    **Broken by**: ``guessing`` on
    Mondays.
    **Guarantee**: none at all.
    **References**: nobody.
    """

    angle: float


class Guessing(TransformInverse):
    """Somebody guesses.

    It guesses well.

    References: nobody.
    """

    story: ClassVar[str] = "Somebody with {k} friends guesses."


class Luck(Rate):
    """How often it was luck."""

    name: ClassVar[str] = "luck"
    bounds: ClassVar[tuple[float, float]] = (0.0, 7.0)
    describe: ClassVar[str] = "share of luck"


class Mood(Amplification):
    """Nobody is in a bad mood."""


PLANTED = {
    "turning": (
        SANITIZERS,
        Turning,
        ["Guarantee: none at all.", "Turns.", "`guessing` on Mondays"],
    ),
    "guessing": (ATTACKS, Guessing(), ["guessing: reconstruction", "Somebody with some friends"]),
    "luck": (METRICS, Luck(), ["luck: privacy, less is better, 0 to 7\n    Share of luck"]),
    "mood": (GATES, Mood(), ["mood\n    Nobody is in a bad mood."]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_overview_planted_entry_appears(name: str, monkeypatch: pytest.MonkeyPatch):
    registry, entry, words = PLANTED[name]
    before = read_text(None)
    monkeypatch.setitem(registry, name, entry)
    after = read_text(None)
    for word in words:
        assert word in after and word not in before, word
    assert read_text(name).startswith(f"{name}: ")


def test_page_planted_entries_name_each_other(monkeypatch: pytest.MonkeyPatch):
    for name, (registry, entry, _) in PLANTED.items():
        monkeypatch.setitem(registry, name, entry)
    assert describe_methods("guessing").payload["entry"]["breaks"] == ["turning"]
    assert "angle: must be given\n      How far it turns.\n" in read_text("turning")
    assert "It guesses well." in read_text("guessing")
    assert '"guessing.breach_rate" = {' in read_text("breach_rate")
    assert '"record_linkage.luck" = {' in read_text("record_linkage")


def test_describe_methods_unknown_name_suggests_one():
    with pytest.raises(
        BadInput, match=r"Nothing is called 'known_pair'. Did you mean 'known_pairs"
    ):
        describe_methods("known_pair")


def test_methods_command_imports_nothing_slow():
    code = (
        "import sys\nfrom ppdm.cli.app import main\n"
        "try:\n    main(['methods', 'pca_laplace', '--json'])\n"
        f"finally:\n    print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    result, heavy = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert json.loads(result) == {
        "schema": "ppdm.methods.1",
        "ok": True,
        "exit_code": 0,
        "error": None,
        **describe_methods("pca_laplace").payload,
    }
    assert heavy == "[]"
