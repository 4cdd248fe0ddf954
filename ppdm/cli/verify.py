"""`ppdm verify`: check the bytes and the signature of a released version."""

from __future__ import annotations

from pathlib import Path

from ppdm.cli.result import CommandResult
from ppdm_core.model.shown_text import show_line


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
    payload = {
        "release_id": found.manifest["release_id"],
        "digest": found.manifest["digest"],
        "signature": signature,
        "signer": found.signer,
        "not_checked": missing,
        "newer": newer,
    }
    return CommandResult(text, payload)


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
