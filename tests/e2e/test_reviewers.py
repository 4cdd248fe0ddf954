"""A release that people approve with their keys, all of them as one operating-system user."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ppdm.cli.release_files import read_release_file
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.manifest import NAME, seal, sign
from tests.support.forkserver import Result
from tests.support.key_files import PASSPHRASE, name_key
from tests.support.signed_homes import KEYS
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.home_key import HomeKey
from warehouse.publishing.manifest import verify

ID = "small-0001"


def decide(release: Small, name: str, *args: str) -> Result:
    given = args or ("--approve", "--note", "qzxcanary note")
    return release.ask("decide", ID, *given, "--key", name_key(release, name))


def query(release: Small, statement: str) -> list[tuple[Any, ...]]:
    with Store(Home(release.home)).transaction("tests") as db:
        return db.execute(statement).fetchall()


@pytest.mark.slow
def test_decide_key_of_reviewer_published_signature_shown_and_checked(
    signed: Small, tmp_path: Path, prefect_api: str
) -> None:
    release = signed.copied_to(tmp_path / "copy")
    own = decide(release, "sam")
    assert own.exit_code == 2 and "which the same key signed" in own.stderr
    result = decide(release, "rita")
    assert result.exit_code == 0, result
    folder = release.published / "latest"
    (approval,) = verify(folder).manifest["approvals"]
    assert approval["by"] == "rita" and approval["signed"]["statement"]["choice"] == "approve"
    (found,) = verify(folder).approvals
    for shown in (
        release.ask("verify", ID).stdout,
        (folder / "card.md").read_text(),
        (folder / "report.html").read_text(),
        release.ask("show", ID, "--all").stdout.replace("\n", ""),
    ):
        assert "rita" in shown and found.key in shown
    texts = [path.read_bytes() for path in folder.iterdir()]
    texts += [result.stdout.encode(), result.stderr.encode(), own.stderr.encode()]
    secrets = [b"qzxcanary", KEYS["rita"].private_bytes_raw().hex().encode()]
    assert not [text for text in texts for secret in secrets if secret in text]
    files = [path for path in release.home.rglob("*") if path.is_file()]
    files += [path for path in Path(os.environ["PREFECT_HOME"]).rglob("*") if path.is_file()]
    private = KEYS["rita"].private_bytes_raw()
    needles = (PASSPHRASE.encode(), private, private.hex().encode())
    assert not [path for path in files for one in needles if one in path.read_bytes()]
    assert release.ask("history", "--verify").exit_code == 0
    check_forged_manifest_refused(release, folder)


def check_forged_manifest_refused(release: Small, folder: Path) -> None:
    """The key of the home signs a manifest with an approval that Rita did not sign."""
    root = bytes.fromhex((release.private / "keys" / "home-seal.key").read_text())
    raw = (folder / NAME).read_bytes()
    for name, value in (
        ("release_id", "small-0002"),
        ("data", "0" * 64),
        ("policy", "0" * 64),
        ("code", "0"),
        ("by", "raj"),
        ("at", "2020"),
        ("note", "0" * 64),
        ("choice", "reject"),
    ):
        body = json.loads(raw)
        body["approvals"][0]["signed"]["statement"][name] = value
        del body["digest"], body["signature"]
        for forged in (sign(body, HomeKey(root).signing()), seal(body)):
            (folder / NAME).write_bytes(forged)
            with pytest.raises(Refused, match="has an approval that its reviewer did not sign"):
                verify(folder)
    (folder / NAME).write_bytes(raw)
    verify(folder)


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "key of a puppet": (("decide", ID, "--approve", "--note", "x", "--key", "puppet.pem"),
                        "counts as a key of its author"),
    "no key": (("decide", ID, "--approve", "--note", "x"), "so an approval is signed"),
    "unknown key": (("decide", ID, "--approve", "--note", "x", "--key", "stranger.pem"),
                    "is not enrolled in this home"),
    "public key": (("decide", ID, "--approve", "--note", "x", "--key", "rita.pub"),
                   "Other users can use the key in rita.pub"),
    "enrolled": (("reviewer", "add", "x", "--public", "rita.pub", "--signed-by", "sam.pem"),
                 "is enrolled already, as that of rita"),
    "unsigned": (("reviewer", "add", "raj", "--public", "raj.pub"),
                 "only one of them can change that"),
    "unknown": (("reviewer", "remove", "raj", "--signed-by", "sam.pem"),
                "There is no reviewer 'raj' in this home."),
    "private as public": (("reviewer", "add", "x", "--public", "raj.pem", "--signed-by", "sam.pem"),
                          "raj.pem is not a public key."),
    "not published": (("withdraw", ID, "--reason", "x"), "is not published"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", BAD)
def test_commands_with_keys_bad_input_one_sentence(signed: Small, what: str) -> None:
    given, sentence = BAD[what]
    paths = [name if "." not in name else str(signed.folder / name) for name in given]
    result = signed.ask(*paths)
    assert result.exit_code == 2 and sentence in result.stderr, result
    assert len(result.stderr.splitlines()) == 1 and PASSPHRASE not in result.stderr
    assert query(signed, "select * from audit.decision") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({"PPDM_KEY": None}, "the author of a release signs it"),
        ({"PPDM_KEY_PASSPHRASE": "wrong"}, "The passphrase is not that of the key in sam.pem"),
        ({"PPDM_KEY": "first.pem"}, "is the first one of this home"),
    ],
)
def test_release_in_home_with_keys_bad_key_nothing_begun(
    signed: Small, env: dict[str, str | None], sentence: str
) -> None:
    before = dict(signed.env)
    named = env.get("PPDM_KEY")
    changed = env if named is None else {"PPDM_KEY": str(signed.folder / named)}
    signed.env |= changed
    result = signed.run("release")
    signed.env = before
    assert result.exit_code == 2 and sentence in result.stderr, result
    assert query(signed, "select count(*) from meta.run") == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "content"),
    [
        ("reviewers", {"rita": "rita.pub"}),
        ("review", {"keys": ["rita.pub"]}),
        ("dataset", {"key": "sam.pem"}),
    ],
)
def test_release_file_with_keys_refused(
    signed: Small, tmp_path: Path, section: str, content: dict[str, Any]
) -> None:
    release = signed.copied_to(tmp_path / "copy")
    release.content[section] = {**release.content.get(section, {}), **content}
    with pytest.raises(BadInput) as caught:
        read_release_file(release.write().file)
    names = (f"'{section}'", f"'{next(iter(content))}'")
    assert any(name in str(caught.value) for name in names)


@pytest.mark.slow
def test_withdraw_approved_release_approval_stays_on_record_and_counts_no_more(
    signed: Small, tmp_path: Path
) -> None:
    release = signed.copied_to(tmp_path / "copy")
    arguments = (name_key(release, "rita"), "none")
    assert release.run(*arguments, ID, entry="approved_with_key").stdout == "published\n"
    assert release.ask("withdraw", ID, "--reason", "A mistake.").exit_code == 0
    late = decide(release, "rita")
    assert late.exit_code == 2 and "does not wait for a decision: it is 'withdrawn'" in late.stderr
    shown = release.ask("show", ID, "--all").stdout
    assert "approve by rita" in shown and "withdrew it" in shown
    # The next release of the same data needs its own approval, and its bytes are refused then.
    assert release.run("", entry="prepared").stdout == "awaiting_review\n"
    again = release.run(*arguments, "small-0002", entry="approved_with_key")
    assert again.stdout == "refused\n", again
    assert "which was withdrawn" in release.ask("status").stdout
    assert release.ask("history", "--verify").exit_code == 0
