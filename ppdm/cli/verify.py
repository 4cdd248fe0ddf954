"""`ppdm verify`: check the bytes and the signature of a released version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from ppdm.cli.replies.others import VerifyReply
from ppdm.cli.result import CommandResult
from ppdm_core.model.shown_text import show_line


def verify_version(name: str, public_key: Path | None, home: Path | None) -> CommandResult:
    """Check a version that a folder, a release id or `latest` names."""
    return verify_release(find_version(name, home), public_key)


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
        read_public_key,
        verify_folder,
    )

    key = None if public_key is None else read_public_key(public_key)
    found = verify_folder(path, key)
    name, count = show_line(found.manifest["release_id"]), f"{found.manifest['rows']:,} records"
    signature: Literal["valid", "not checked", "none"]
    if found.is_checked:
        missing, signature = None, "valid"
        text = f"{name}: every byte is as the steward with key {found.signer} signed it ({count})."
    else:
        missing = explain_unchecked_signature(found.signer)
        signature = "not checked" if found.signer else "none"
        text = f"{name}: every byte is as its manifest says ({count}).\nNOT checked: {missing}"
    newer = find_newer_version(find_folder(path), found, key)
    if newer is not None:
        text += f"\nA newer version lies beside it: {show_line(newer)}."
    reply = VerifyReply(
        release_id=found.manifest["release_id"],
        digest=found.manifest["digest"],
        signature=signature,
        signer=found.signer,
        not_checked=missing,
        newer=newer,
    )
    return CommandResult(text, reply.as_payload())


def explain_unchecked_signature(signer: str | None) -> str:
    """Return why the origin of a release is not proven, and what would prove it."""
    if signer is None:
        return (
            "who made it. The manifest is not signed, as those of earlier versions of ppdm are "
            "not: any person could have written this folder."
        )
    return (
        f"who made it. The manifest names key {signer}, as any manifest can. Get the steward's "
        "public key by another way than this folder, and add: --public-key FILE"
    )
