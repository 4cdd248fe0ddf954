"""What others can hold a steward to: verified releases, the public key, a history that is whole."""

from __future__ import annotations

import os
from pathlib import Path

from ppdm.cli.release import open_home
from ppdm.cli.result import Answer
from ppdm_core.model.errors import BadInput


def verify_release(path: Path, public_key: Path | None) -> Answer:
    from warehouse.publishing.manifest import read_public_key, verify

    key = None if public_key is None else read_public_key(public_key)
    found = verify(path, key)
    name, count = found.manifest["release_id"], f"{found.manifest['rows']:,} records"
    if found.is_checked:
        missing, signature = None, "valid"
        text = f"{name}: every byte is as it left the steward with key {found.signer} ({count})."
    else:
        missing, signature = unchecked(found.signer), "not checked" if found.signer else "none"
        text = f"{name}: every byte is as its manifest says ({count}).\nNOT checked: {missing}"
    payload = {
        "release_id": name,
        "digest": found.manifest["digest"],
        "signature": signature,
        "signer": found.signer,
        "not_checked": missing,
    }
    return Answer(text, payload)


def unchecked(signer: str | None) -> str:
    if signer is None:
        return (
            "who made it. The manifest is not signed, as those of earlier versions of ppdm are "
            "not: anybody could have written this folder."
        )
    return (
        f"who made it. The manifest names key {signer}, as anybody's could. Get the steward's "
        "public key by another way than this folder, and add: --public-key FILE"
    )


def export_public_key(out: Path, home: Path | None) -> Answer:
    from tasks.keys import public_key
    from warehouse.home import machine_errors
    from warehouse.publishing.manifest import key_fingerprint, read_public_key

    store = open_home(home)
    if out.exists():
        raise BadInput(
            f"{out.name} exists already.", file=str(out), remedy="Name a file that does not."
        )
    pem = public_key(store)
    with machine_errors(out.parent):
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
    fingerprint = key_fingerprint(read_public_key(out))
    text = (
        f"The public key ({fingerprint}) is in {out}. Hand it to recipients, not in the folders "
        "that it is to prove."
    )
    return Answer(text, {"fingerprint": fingerprint, "file": str(out)})


def list_events(home: Path | None) -> Answer:
    from warehouse.integrity.seals import read_rows

    with open_home(home).transaction("history") as db:
        rows = sorted(read_rows(db, "meta.event"), key=lambda row: row["number"])
    lines = [
        f"{row['number']:>6}  {row['happened']:%Y-%m-%d %H:%M:%S}  "
        f"{row['release_id'] or row['dataset'] or '-':<16}  {row['kind']}"
        for row in rows
    ]
    events = [
        {name: row[name] for name in ("number", "dataset", "release_id", "kind", "mac")}
        | {"happened": row["happened"].isoformat()}
        for row in rows
    ]
    return Answer("\n".join(lines) or "Nothing has happened yet.", {"events": events})


def verify_history(home: Path | None) -> Answer:
    """A broken history is refused, with the first thing that does not hold."""
    from warehouse.integrity.history import check_history, check_manifests

    store = open_home(home)
    with store.transaction("history") as db:
        found = check_history(db)
        folders = check_manifests(store.home, db)
    events = len(found.events)
    text = (
        f"The history is whole: {events:,} events in a chain, {found.rows:,} sealed rows, "
        f"{folders:,} published version{'' if folders == 1 else 's'}."
    )
    if found.unsealed:
        text += (
            f"\nNOT checked: what happened to {found.unsealed:,} rows before there were seals; "
            "since then they are unchanged."
        )
    counts = {"events": events, "rows": found.rows, "folders": folders}
    return Answer(text, {**counts, "unsealed": found.unsealed})
