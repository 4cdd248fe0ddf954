"""`ppdm site` and `ppdm centre`: joining, bad input, and what status shows."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from ppdm.cli import site_status, sites
from ppdm_core.model.errors import BadInput, MachineTrouble
from tasks.sites.exchange import StillWaiting, open_exchange
from tests.support.contexts import create_home
from tests.support.small_release import CONTENT, small_rows, write_csv

OTHERS = {"north": "a" * 32, "south": "b" * 32}


def write_file(folder: Path, *, has_table: bool = True, **sanitizer: Any) -> Path:
    """Write the release file of a party, with a home that is empty."""
    folder.mkdir()
    content = copy.deepcopy(CONTENT)
    content["dataset"]["name"] = "ward"
    content["source"]["path"] = "t.csv"
    content["sanitizer"] |= sanitizer
    (folder / "release.toml").write_text(tomlkit.dumps(content))
    if has_table:
        write_csv(folder / "t.csv", small_rows(30))
    create_home(folder / ".ppdm")
    return folder / "release.toml"


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PPDM_HOME", raising=False)
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


def list_pins(names: dict[str, str]) -> list[str]:
    return [f"{name}={pin}" for name, pin in names.items()]


def test_status_before_joining_prints_the_fingerprint(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    found = site_status.show_status(file, is_centre=False)
    assert len(found.payload["fingerprint"]) == 32
    assert found.payload["fingerprint"] in found.text and "ppdm site join" in found.text
    again = site_status.show_status(file, is_centre=False)
    assert again.payload["fingerprint"] == found.payload["fingerprint"]


def test_join_pins_all_parties_and_status_shows_them(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    joined = sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), None)
    own = joined.payload["fingerprint"]
    assert joined.payload["sites"] == {"east": own, **OTHERS}
    found = site_status.show_status(file, is_centre=False)
    assert found.payload["party"] == "east" and found.payload["session"] == "0001"
    assert found.payload["messages"] == [] and found.payload["roll"] is None
    assert "No message of this release yet." in found.text


def test_join_accepts_its_own_pin_among_the_sites(tmp_path: Path, shared: Path):
    """One list of sites can be sent to all of them."""
    file = write_file(tmp_path / "east")
    own = site_status.show_status(file, is_centre=False).payload["fingerprint"]
    pins = list_pins({"east": own, **OTHERS})
    joined = sites.join_release(file, "east", shared, "c" * 32, pins, None)
    assert joined.payload["sites"] == {"east": own, **OTHERS}


def test_join_wrong_own_fingerprint_refused(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    pins = list_pins({"east": "d" * 32, **OTHERS})
    with pytest.raises(BadInput, match="The site 'east' is given twice"):
        sites.join_release(file, "east", shared, "c" * 32, pins, None)


def test_init_centre_needs_no_table(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "centre", has_table=False)
    pins = list_pins({"east": "d" * 32, **OTHERS})
    found = sites.prepare_centre(file, shared, pins)
    assert found.payload["party"] == "centre" and len(found.payload["sites"]) == 3
    assert site_status.show_status(file, is_centre=True).payload["party"] == "centre"


BAD: dict[str, tuple[list[str], str]] = {
    "two sites": (list_pins(OTHERS), "needs at least 3 sites; 2 are named"),
    "a site twice": ([*list_pins(OTHERS), f"north={'e' * 32}"], "'north' is given twice"),
    "a key twice": ([*list_pins(OTHERS), f"west={'a' * 32}"], "is that of another party"),
    "no equals": ([*list_pins(OTHERS), "west"], "NAME=FINGERPRINT"),
    "bad name": ([*list_pins(OTHERS), f"West={'e' * 32}"], "cannot be the name of a site"),
    "named centre": (
        [*list_pins(OTHERS), f"centre={'e' * 32}"],
        "No site can have the name 'centre'",
    ),
    "bad fingerprint": ([*list_pins(OTHERS), "west=12"], "32 hexadecimal digits"),
}


@pytest.mark.parametrize("case", BAD)
def test_init_bad_sites_refused(tmp_path: Path, shared: Path, case: str):
    pins, words = BAD[case]
    file = write_file(tmp_path / "centre", has_table=False)
    with pytest.raises(BadInput, match=words) as error:
        sites.prepare_centre(file, shared, pins)
    assert error.value.remedy


def test_join_shared_folder_missing_refused(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    with pytest.raises(BadInput, match="does not exist"):
        sites.join_release(file, "east", tmp_path / "nowhere", "c" * 32, list_pins(OTHERS), None)


def test_join_test_rows_missing_refused(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    with pytest.raises(BadInput, match="do not exist"):
        sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), tmp_path / "none.csv")


def test_join_test_rows_of_other_columns_refused(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    test = tmp_path / "test.csv"
    test.write_text("id,x\n")
    with pytest.raises(BadInput, match="have other columns than the test rows"):
        sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), test)


def test_join_intersection_of_the_same_columns_refused(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    given = "east", shared, "c" * 32, list_pins(OTHERS), None
    with pytest.raises(BadInput, match="--intersection is for parties that hold other") as error:
        sites.join_release(file, *given, intersects=True)
    assert error.value.file == str(file) and error.value.remedy


def test_errors_about_the_release_file_name_it(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east", scale="zscore")
    with pytest.raises(BadInput, match="cannot scale by z-scores") as joined:
        sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), None)
    with pytest.raises(BadInput, match="cannot scale by z-scores") as prepared:
        sites.prepare_centre(file, shared, list_pins({"east": "d" * 32, **OTHERS}))
    assert joined.value.file == prepared.value.file == str(file)


def test_join_test_rows_without_a_column_refused(tmp_path: Path, shared: Path):
    """A file that cannot be used is refused here, and not hours later at the pool."""
    file = write_file(tmp_path / "east")
    content = tomlkit.parse(file.read_text())
    content["sanitizer"] = {"method": "kde_resample"}
    file.write_text(tomlkit.dumps(content))
    test = tmp_path / "test.csv"
    test.write_text("id,x\n")
    with pytest.raises(BadInput, match=r"The test rows test\.csv have no column") as error:
        sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), test)
    assert error.value.file == str(test) and error.value.column


def test_run_without_joining_refused(tmp_path: Path, shared: Path):
    _, context = sites.read_centre_file(write_file(tmp_path / "east"))
    with pytest.raises(BadInput, match="takes no part in a common release of 'ward'"):
        open_exchange(context, 0.0, is_centre=False)


@pytest.mark.parametrize("is_centre", [False, True])
def test_run_that_cannot_work_refused_before_servers_start(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, is_centre: bool
):
    monkeypatch.setattr(sites, "use_prefect_server", lambda *args, **more: pytest.fail("started"))
    file = write_file(tmp_path / "east")
    with pytest.raises(BadInput, match="takes no part") as error:
        sites.run_party(file, 0.0, is_centre=is_centre)
    assert error.value.file == str(file)
    assert ("centre init" if is_centre else "site join") in str(error.value.remedy)


def test_join_undeclared_bounds_refused_with_file_and_column(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    content: Any = tomlkit.parse(file.read_text())
    content["columns"]["iron"] |= {"low": "from_data", "high": "from_data"}
    file.write_text(tomlkit.dumps(content))
    for act in (
        lambda: sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), None),
        lambda: sites.prepare_centre(file, shared, list_pins({"east": "d" * 32, **OTHERS})),
    ):
        with pytest.raises(BadInput, match="would come from the data of each site") as error:
            act()
        assert (error.value.file, error.value.column) == (str(file), "iron")


def test_join_next_line_names_the_release_file(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "the east")
    joined = sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), None)
    assert f"ppdm site run '{file}'" in " ".join(joined.text.split()).replace("' ", "'")


@pytest.mark.parametrize(("name", "command"), [("centre", "centre"), ("north", "site")])
def test_join_bad_fingerprint_names_the_command_of_that_party(
    tmp_path: Path, shared: Path, name: str, command: str
):
    file = write_file(tmp_path / "east")
    pins = {"centre": "c" * 32, **OTHERS} | {name: "12"}
    centre = pins.pop("centre")
    with pytest.raises(BadInput, match=f"The fingerprint of '{name}'") as error:
        sites.join_release(file, "east", shared, centre, list_pins(pins), None)
    assert f"ppdm {command} status FILE" in str(error.value.remedy)


def test_run_as_the_wrong_party_refused(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), None)
    _, context = sites.read_centre_file(file)
    with pytest.raises(BadInput, match="takes part as 'east'") as error:
        open_exchange(context, 0.0, is_centre=True)
    assert error.value.remedy == "Use ppdm site run FILE."


def test_run_waits_and_says_for_what(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), None)
    _, context = sites.read_centre_file(file)
    with pytest.raises(StillWaiting, match="Still waiting for the roll of the centre") as error:
        open_exchange(context, 0.0, is_centre=False).begin()
    assert error.value.exit_code == 5


def test_run_shared_folder_gone_is_machine_trouble(tmp_path: Path, shared: Path):
    file = write_file(tmp_path / "east")
    sites.join_release(file, "east", shared, "c" * 32, list_pins(OTHERS), None)
    shared.rmdir()
    _, context = sites.read_centre_file(file)
    with pytest.raises(MachineTrouble, match="is not there") as error:
        open_exchange(context, 0.0, is_centre=False).begin()
    assert error.value.exit_code == 5 and "continues" in str(error.value.remedy)
