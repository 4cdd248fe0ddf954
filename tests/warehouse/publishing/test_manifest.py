from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ppdm.release_folder import read_public_key, verify_folder
from ppdm_core.model.errors import BadInput, PpdmError, Refused
from ppdm_core.model.manifest import (
    NAME,
    Verified,
    canonical_json,
    key_fingerprint,
    public_pem,
    seal,
    sign,
)
from warehouse.publishing import manifest
from warehouse.publishing.manifest import file_digest

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key()
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))


def verify(path: Path, key: Any = None) -> Verified:
    """Verify a folder as the pipeline and as a recipient does; both must find the same."""
    found = [try_verify(each, path, key) for each in (manifest.verify, verify_folder)]
    if isinstance(found[0], PpdmError):
        assert isinstance(found[1], PpdmError) and found[0].as_dict() == found[1].as_dict()
        raise found[0]
    assert found[0] == found[1]
    return found[0]


def try_verify(reader: Callable[..., Verified], path: Path, key: Any) -> Verified | PpdmError:
    try:
        return reader(path, key)
    except PpdmError as error:
        return error


def build_body(folder: Path) -> dict[str, Any]:
    files = {path.name: {"sha256": file_digest(path)} for path in folder.iterdir()}
    files.pop(NAME, None)
    body = {"release_id": "wine-0001", "rows": 3, "files": files, "owner": "é"}
    return {**body, "figures": [1, 1.5, None, True]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "0001"
    folder.mkdir()
    (folder / "data.parquet").write_bytes(bytes(range(64)))
    (folder / "card.md").write_text("# A card\n")
    (folder / NAME).write_bytes(sign(build_body(folder), KEY))
    return folder


def test_verify_untouched_release_passes(folder: Path) -> None:
    for path in (folder, folder / NAME):
        found = verify(path, PUBLIC)
        assert found.manifest["release_id"] == "wine-0001"
        assert (found.signer, found.is_checked) == (key_fingerprint(PUBLIC), True)
    assert not verify(folder).is_checked


def test_sign_signature_covers_canonical_bytes(folder: Path) -> None:
    """The signature is checked without this program."""
    body = json.loads((folder / NAME).read_text())
    del body["digest"]
    signature = body.pop("signature")
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    PUBLIC.verify(bytes.fromhex(signature["ed25519"]), b"ppdm manifest 1\n" + text.encode())
    digest = hashlib.sha256(PUBLIC.public_bytes_raw()).hexdigest()
    assert signature["key"] == digest[:32]


def test_sign_digest_is_last_field(folder: Path) -> None:
    text = (folder / NAME).read_text()
    assert list(json.loads(text))[-1] == "digest"
    assert text.count("\n") == 1


@pytest.mark.parametrize("key", [None, PUBLIC], ids=["no key", "key"])
@pytest.mark.parametrize("name", ["data.parquet", "card.md", NAME])
def test_verify_any_changed_byte_refused(folder: Path, name: str, key: Any) -> None:
    """The signature, too, even by those who cannot check it."""
    path = folder / name
    original = path.read_bytes()
    rng = random.Random(1)
    for position in range(len(original)):
        changed = bytearray(original)
        changed[position] ^= rng.randrange(1, 256)
        path.write_bytes(bytes(changed))
        with pytest.raises(Refused):
            verify(folder, key)
    for other in (original + b" ", original[:-1], b"", original + original):
        path.write_bytes(other)
        with pytest.raises(Refused):
            verify(folder, key)
    path.write_bytes(original)
    verify(folder, key)


@pytest.mark.extended
def test_verify_changed_byte_of_large_file_refused(folder: Path) -> None:
    path, rng, size = folder / "data.parquet", random.Random(2), 3_000_001
    path.write_bytes(rng.randbytes(size))
    (folder / NAME).write_bytes(sign(build_body(folder), KEY))
    verify(folder, PUBLIC)
    with path.open("r+b", buffering=0) as file:
        for place in (0, size - 1, *rng.sample(range(size), 50)):
            file.seek(place)
            (byte,) = file.read(1)
            for value in (byte ^ rng.randrange(1, 256), byte):
                file.seek(place)
                file.write(bytes([value]))
                if value != byte:
                    with pytest.raises(Refused):
                        verify(folder, PUBLIC)
    verify(folder, PUBLIC)


def test_verify_folder_signed_by_another_key_refused(folder: Path) -> None:
    """Other data with the right digests: only the signature differs."""
    (folder / "data.parquet").write_bytes(b"other data")
    old_signature = json.loads((folder / NAME).read_text())["signature"]
    (folder / NAME).write_bytes(seal({**build_body(folder), "signature": old_signature}))
    verify(folder)
    with pytest.raises(Refused, match="signature that is not of this key"):
        verify(folder, PUBLIC)
    (folder / NAME).write_bytes(sign(build_body(folder), OTHER))
    with pytest.raises(Refused, match="signed with another key"):
        verify(folder, PUBLIC)
    forged = json.loads(sign(build_body(folder), OTHER))["signature"] | {
        "key": old_signature["key"]
    }
    (folder / NAME).write_bytes(seal({**build_body(folder), "signature": forged}))
    with pytest.raises(Refused, match="signature that is not of this key"):
        verify(folder, PUBLIC)


def test_verify_unsigned_manifest_not_checked(folder: Path) -> None:
    (folder / NAME).write_bytes(seal(build_body(folder)))
    found = verify(folder)
    assert (found.signer, found.is_checked) == (None, False)
    with pytest.raises(Refused, match="is not signed"):
        verify(folder, PUBLIC)


def spaced(text: str) -> str:
    return text.replace(":", ": ", 1)


def reordered(text: str) -> str:
    content = json.loads(text)
    backward = dict(sorted(content.items(), reverse=True))
    return json.dumps(backward, separators=(",", ":"), ensure_ascii=False) + "\n"


def doubled(text: str) -> str:
    return text.replace('"rows":3', '"rows":2,"rows":3')


def escaped(text: str) -> str:
    return text.replace("é", "\\u00e9")


OTHER_FORMS: dict[str, Callable[[str], str]] = {
    "spaces": spaced,
    "order": reordered,
    "twice": doubled,
    "escapes": escaped,
    "surrogate": lambda text: text.replace("é", "\\ud800"),
    "number": lambda text: text.replace("1.5", "1.50"),
    "exponent": lambda text: text.replace("1.5", "15e-1"),
    "no number": lambda text: text.replace("1.5", "NaN"),
    "too large": lambda text: text.replace("1.5", "1e999"),
    "no newline": str.rstrip,
    "carriage return": lambda text: text.replace("\n", "\r\n"),
    "mark": lambda text: "\ufeff" + text,
    "capitals": lambda text: text.replace(json.loads(text)["signature"]["ed25519"], "A" * 128),
    "deep": lambda text: "[" * 100_000,
    "a list": lambda text: "[]\n",
    "a number": lambda text: "5\n",
}


@pytest.mark.parametrize("what", OTHER_FORMS)
def test_verify_manifest_not_canonical_refused(folder: Path, what: str) -> None:
    """Also if it says the same."""
    path = folder / NAME
    text = path.read_text()
    changed = OTHER_FORMS[what](text)
    assert changed != text
    path.write_text(changed, newline="")
    with pytest.raises(Refused, match="was changed after the release"):
        verify(folder, PUBLIC)
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(Refused):
        verify(folder, PUBLIC)


SIGNED = {"key": "0" * 32, "ed25519": "0" * 128}


@pytest.mark.parametrize(
    "change",
    [
        {"files": []},
        {"files": {"card.md": "a digest"}},
        {"files": {"../0001/card.md": {"sha256": "0"}}},
        {"rows": "3"},
        {"release_id": None},
        {"signature": None},
        {"signature": "by me"},
        {"signature": {}},
        {"signature": {**SIGNED, "key": "\x1b[31m" + "0" * 27}},
        {"signature": {**SIGNED, "ed25519": "A" * 128}},
        {"signature": {**SIGNED, "note": ""}},
    ],
    ids=str,
)
def test_verify_manifest_of_other_form_refused(folder: Path, change: dict[str, Any]) -> None:
    """Anybody can compute a digest; what they write must not trip us."""
    (folder / NAME).write_bytes(seal({**build_body(folder), **change}))
    with pytest.raises(Refused):
        verify(folder)


def test_canonical_json_nan_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": float("inf")})


def test_verify_missing_or_extra_file_refused(folder: Path) -> None:
    extra = folder / "more.txt"
    extra.touch()
    with pytest.raises(Refused, match=r"more\.txt is not part"):
        verify(folder)
    extra.unlink()
    card = folder / "card.md"
    card.unlink()
    with pytest.raises(Refused, match=r"card\.md is missing"):
        verify(folder)
    card.mkdir()
    with pytest.raises(Refused, match=r"card\.md was changed"):
        verify(folder)


def test_verify_folder_without_manifest_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no manifest"):
        verify(tmp_path)


def test_read_public_key_written_key_equal(tmp_path: Path) -> None:
    path = tmp_path / "steward.pem"
    path.write_bytes(public_pem(PUBLIC))
    assert path.read_text().startswith("-----BEGIN PUBLIC KEY-----\n")
    assert read_public_key(path) == PUBLIC


@pytest.mark.parametrize("what", ["missing", "empty", "text", "another kind"])
def test_read_public_key_other_content_bad_input(tmp_path: Path, what: str) -> None:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    path = tmp_path / "key.pem"
    other = X25519PrivateKey.generate().public_key()
    pem = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    contents = {"empty": b"", "text": b"a key", "another kind": pem}
    if what in contents:
        path.write_bytes(contents[what])
    with pytest.raises(BadInput, match="ppdm key public"):
        read_public_key(path)
