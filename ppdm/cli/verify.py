"""`ppdm verify`: check the bytes and the signature of a released version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ppdm.cli.replies.others import SignedApprovalBody, VerifyReply
from ppdm.cli.replies.releases import WithdrawalBody
from ppdm.cli.result import CommandResult
from ppdm_core.model.shown_text import show_line

if TYPE_CHECKING:
    from ppdm_core.model.manifest import Verified
    from ppdm_core.model.withdrawal import Notice

Signature = Literal["valid", "not checked", "none"]


def verify_version(
    name: str, public_key: Path | None, home: Path | None, table: str | None = None
) -> CommandResult:
    """Check a version that a folder, a release id, `latest` or a URL names."""
    from ppdm.remote_release import fetch_bucket_version
    from warehouse.buckets import is_url
    from warehouse.postgresql import SCHEMES

    if name.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
        return verify_table(name, table or "", public_key)
    if is_url(name):
        with fetch_bucket_version(name) as folder:
            return verify_release(folder, public_key)
    return verify_release(find_version(name, home), public_key)


def verify_table(url: str, table: str, public_key: Path | None) -> CommandResult:
    """Check a released table of a database: its rows, and the signature if a key is given."""
    from ppdm.release_folder import read_public_key
    from ppdm.remote_release import verify_database
    from ppdm_core.model.withdrawal import Notice

    key = None if public_key is None else read_public_key(public_key)
    found = verify_database(url, table, key)
    if isinstance(found, Notice):
        return report_withdrawal(found, Path(table))
    return report_verified(found, "row")


def find_version(name: str, home: Path | None) -> Path:
    """Return the folder that a name stands for; a folder that exists comes first."""
    from ppdm.release_folder import LATEST, split_release_id
    from ppdm_core.model.errors import BadInput
    from tasks.environment import choose_home
    from warehouse.home import Home

    if Path(name).exists():
        return Path(name)
    published = Home(choose_home(home)).published
    dataset, _, last = name.rpartition("/")
    if last == LATEST and not dataset:
        datasets = sorted(path.name for path in published.glob("*/") if path.is_dir())
        if len(datasets) > 1:
            raise BadInput(
                f"`{LATEST}` is not clear: {len(datasets)} datasets are published here.",
                remedy=f"Name one: {' or '.join(f'{each}/{LATEST}' for each in datasets)}",
            )
        dataset = "".join(datasets)
    if last == LATEST and dataset:
        return published / dataset / LATEST
    if re.fullmatch(r"[a-z][a-z0-9_]*-\d{4,}", name):
        dataset, number = split_release_id(name)
        return published / dataset / f"{number:04d}"
    return Path(name)


def verify_release(path: Path, public_key: Path | None) -> CommandResult:
    """Check a released version against its manifest, and the signature if a key is given."""
    from ppdm.release_folder import (
        find_folder,
        find_newer_version,
        read_notice,
        read_public_key,
        verify_folder,
    )

    key = None if public_key is None else read_public_key(public_key)
    notice = read_notice(find_folder(path), key)
    if notice is not None:
        return report_withdrawal(notice, path)
    found = verify_folder(path, key)
    newer = find_newer_version(find_folder(path), found, key)
    return report_verified(found, "byte", newer)


def report_verified(found: Verified, unit: str, newer: str | None = None) -> CommandResult:
    """Return the result for a version that is as it was published; every ``unit`` was compared."""
    name, count = show_line(found.manifest["release_id"]), f"{found.manifest['rows']:,} records"
    signature, missing = describe_signature(found, "manifest")
    if missing is None:
        text = (
            f"{name}: every {unit} is as the steward with key {found.signer} signed it ({count})."
        )
    else:
        text = f"{name}: every {unit} is as its manifest says ({count}).\nNOT checked: {missing}"
    for one in found.approvals:
        text += f"\nApproved by {show_line(one.by)}, signed with key {one.key}."
    if newer is not None:
        text += f"\nA newer version lies beside it: {show_line(newer)}."
    reply = VerifyReply(
        release_id=found.manifest["release_id"],
        digest=found.manifest["digest"],
        signature=signature,
        signer=found.signer,
        not_checked=missing,
        newer=newer,
        approvals=tuple(SignedApprovalBody(by=one.by, key=one.key) for one in found.approvals),
    )
    return CommandResult(text, reply.as_payload())


def report_withdrawal(notice: Notice, path: Path) -> CommandResult:
    """Return the result for a withdrawn version: refused, with date and reason."""
    signature, missing = describe_signature(notice, "notice")
    error = notice.as_error(path)
    lines = [f"WITHDRAWN: {error}"]
    if missing is None:
        lines.append(f"The steward with key {notice.signer} signed this notice.")
    else:
        lines.append(f"NOT checked: {missing}")
    reply = VerifyReply(
        release_id=notice.release_id,
        digest=notice.body["digest"],
        signature=signature,
        signer=notice.signer,
        not_checked=missing,
        newer=None,
        withdrawn=WithdrawalBody(at=notice.body["withdrawn"], reason=notice.body["reason"]),
    )
    text = "\n".join(map(show_line, lines))
    return CommandResult(text, reply.as_payload(), exit_code=error.exit_code, error=error)


def describe_signature(found: Verified | Notice, file: str) -> tuple[Signature, str | None]:
    """Return whether a signature is proven, and what is not checked if it is not.

    ``file`` is what is signed: "manifest" or "notice".
    """
    if found.is_checked:
        return "valid", None
    missing = explain_unchecked_signature(found.signer, file)
    return ("not checked" if found.signer else "none"), missing


def explain_unchecked_signature(signer: str | None, file: str) -> str:
    """Return why the origin of a release is not proven, and what would prove it."""
    if signer is None:
        return (
            f"who made it. The {file} is not signed, as those of earlier versions of ppdm are "
            "not: any person could have written this folder."
        )
    return (
        f"who made it. The {file} names key {signer}, as any {file} can. Get the steward's "
        "public key by another way than this folder, and add: --public-key FILE"
    )
