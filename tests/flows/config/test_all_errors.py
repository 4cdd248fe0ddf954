"""All errors of a release file are reported at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.config.release_file import load
from ppdm.cli.release_files import read_release_file
from ppdm.cli.result import format_error
from ppdm_core.model.errors import BadInput
from tests.support.small_release import Small


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path, "small", {})


def read_errors(small: Small) -> list[str]:
    """Return the messages of all errors of the file."""
    small.write()
    with pytest.raises(BadInput) as caught:
        read_release_file(small.file)
    assert {each.file for each in caught.value.list_all()} == {str(small.file)}
    return [each.message for each in caught.value.list_all()]


def test_load_errors_in_sections_columns_and_policy_all_reported(small: Small) -> None:
    small.content["dataset"]["ownr"] = "registry"
    small.content["dataset"]["keep_raw"] = 0
    small.content["source"]["delimiter"] = "ab"
    small.content["columns"]["iron"]["low"] = 11
    small.content["columns"]["pulse"]["role"] = "featur"
    small.content["sanitizer"]["component"] = 1
    small.content["sanitizer"]["basis_share"] = 7
    small.content["audit"]["required"] = ["known_pair"]
    small.content["limits"]["record_linkage.rate"]["value"] = -1
    small.content["limits"]["knn_acuracy"] = {"value": 0.5}
    small.content["schedule"] = {"cron": "0 30 * * 1", "timezone": "Erope/Berlin"}
    found = read_errors(small)
    assert len(found) == len(set(found))
    for words in (
        "Unknown key 'ownr' in [dataset].",
        "The 'keep_raw' key of [dataset] must be",
        "The 'delimiter' key of [source] must be one character.",
        "Column 'iron' has low = 11 and high = 10.",
        "The 'role' key of column 'pulse' must be",
        "'component' is not a parameter of method 'pca_laplace'.",
        "The 'basis_share' parameter of PcaLaplace must be",
        "Unknown attack 'known_pair'.",
        "Unknown metric 'knn_acuracy'.",
        "The hour '30' of 'cron' in [schedule]",
        "Unknown time zone 'Erope/Berlin' in [schedule].",
    ):
        assert [each for each in found if each.startswith(words)], (words, found)


def test_load_valid_sections_errors_of_settings_all_reported(small: Small) -> None:
    small.content["columns"]["iron"] = {
        "role": "feature",
        "type": "categorical",
        "categories": ["a", "b"],
    }
    small.content["audit"]["groups"] = ["height"]
    small.content["limits"]["label.rate"]["value"] = -1
    del small.content["dataset"]["record_id"]
    found = read_errors(small)
    assert [each.split(" ")[0] for each in found] == ["Column", "Method", "The", "'height'"]


def test_load_mistyped_key_not_reported_as_missing_too(small: Small) -> None:
    small.content["sanitizer"]["methd"] = small.content["sanitizer"].pop("method")
    small.content["dataset"]["nmae"] = small.content["dataset"].pop("name")
    found = read_errors(small)
    assert found[0] == "Unknown key 'nmae' in [dataset]."
    assert not any("'name' key" in each for each in found)


def test_load_missing_parameter_of_similar_name_not_reported_too(small: Small) -> None:
    small.content["sanitizer"] = {"method": "additive_noise", "bb": 0.5}
    assert read_errors(small) == ["'bb' is not a parameter of method 'additive_noise'."]


def test_load_both_parts_of_a_pipeline_reported(small: Small) -> None:
    small.content["sanitizer"] = {
        "method": "pipeline",
        "numeric": {"method": "additive_noise", "b": -1},
        "categorical": {"method": "randomized_response", "gamma": 3},
    }
    found = read_errors(small)
    assert [each.split(" of ")[0] for each in found[:2]] == [
        "The 'b' parameter",
        "The 'gamma' parameter",
    ]


def test_load_weaker_than_policy_every_key_reported(small: Small) -> None:
    (small.folder / "hospital.toml").write_text(
        "[attacker]\nknown_records = 50\n[audit]\nshadow_draws = 5\n"
        '[limits]\n"record_linkage.rate" = { value = 0.01 }\n"label.rate" = { value = 0.01 }\n'
    )
    small.content = {"format": 1, "policy": "hospital.toml", **small.content}
    found = read_errors(small)
    keys = ("record_linkage.rate", "label.rate", "effort", "shadow_draws", "known_records")
    for key in (*keys, "epsilon"):
        assert sum(f"'{key}'" in each and "weaker" in each for each in found) == 1, key
    assert len(found) == 6


def test_format_error_several_are_a_list_one_is_a_line(small: Small) -> None:
    small.content["dataset"]["ownr"] = "x"
    small.write()
    with pytest.raises(BadInput) as caught:
        load(small.file)
    assert format_error(caught.value) == (
        f"ppdm: {small.file}: Unknown key 'ownr' in [dataset]. Did you mean 'owner'?"
    )
    small.content["dataset"]["keep_raw"] = 0
    small.write()
    with pytest.raises(BadInput) as caught:
        load(small.file)
    first, *lines = format_error(caught.value).splitlines()
    assert first == f"ppdm: {small.file}: 2 errors"
    assert [line[:4] for line in lines] == ["  - ", "  - "]
    assert [each["message"] for each in caught.value.as_dict()["others"]] == [
        caught.value.others[0].message
    ]
