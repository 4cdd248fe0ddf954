from __future__ import annotations

import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ppdm_core.model.rows import Block
from ppdm_core.numerics.noise import Noise, frame_parts

KEY = bytes(range(32))
FINGERPRINT = b"mechanism"


# An unchanged record must keep its bytes: a change of these values needs a new scheme.
GOLDEN = {
    "bits": "4bea292a60ec2c7ec8fd8ca723d694c9d0bd5011c388790d446fcfb5bc0dd4ef",
    "subkey": "134f28674cc8ffaac78dcba6c8c4fc411bb303a284fb6b46be6e77f24855b41b",
    "derive": "78ff838278246c5153b9afc2fcdd1185f63cd66f16936b7e4bee1d865313b336",
    "record": "e3f8232c2523dd035585fb52e0506cc5",
    "rank": "59d3882b9432eb2a",
    "generator": "9b2f1b9f763687c6",
}


def make_block(n: int = 3, d: int = 2) -> Block:
    return Block(
        X=np.arange(n * d, dtype=np.float64).reshape(n, d) / 4,
        C=np.zeros((n, 0), dtype=np.int32),
        label=np.zeros(n, dtype=np.int32),
        key=np.arange(n * 16, dtype=np.uint8).reshape(n, 16),
        record=np.arange(n),
        start=0,
    )


def frame(*parts: bytes) -> bytes:
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def compute_cell(
    key: bytes, record: bytes, values: list[float], component: int, name: bytes
) -> bytes:
    """Return the bits of a single cell by an independent implementation of the scheme."""

    def subkey(purpose: bytes) -> bytes:
        text = frame(b"ppdm-noise-1", purpose, name)
        return hashlib.blake2b(text, key=key, digest_size=32).digest()

    data = record + b"".join(struct.pack("<d", value) for value in values)
    text = frame(name, FINGERPRINT) + frame(data)
    digest = hashlib.blake2b(text, key=subkey(b"digest"), digest_size=16).digest()
    cipher = Cipher(algorithms.AES256(subkey(b"cell")), modes.ECB()).encryptor()
    return cipher.update(digest[:12] + struct.pack("<I", component))


def test_bits_match_scheme_per_cell():
    rows = make_block(5, 3)
    bits = Noise(KEY).bits(rows, "law", 4, FINGERPRINT)
    assert bits.shape == (5, 4, 2)
    for i in range(5):
        for component in range(4):
            expected = compute_cell(KEY, bytes(rows.key[i]), rows.X[i].tolist(), component, b"law")
            assert bits[i, component].tobytes() == expected


def test_noise_golden_bytes():
    noise = Noise(KEY)
    assert noise.bits(make_block(), "law", 2, FINGERPRINT)[1].tobytes().hex() == GOLDEN["bits"]
    assert noise.subkey("a", "b").hex() == GOLDEN["subkey"]
    assert noise.derive("shadow").subkey("a").hex() == GOLDEN["derive"]
    assert noise.make_record_keys([b"patient 1"], "ids")[0].hex() == GOLDEN["record"]
    assert noise.ranks(make_block().key, "order")[2:].tobytes().hex() == GOLDEN["rank"]
    assert noise.generator("rotation").bytes(8).hex() == GOLDEN["generator"]


def test_frame_parts_different_lists_give_different_bytes():
    assert frame_parts("ab", "c") != frame_parts("a", "bc")
    assert frame_parts("ab") != frame_parts("ab", "")
    assert frame_parts("é") == frame("é".encode())


def read_bits(
    rows: Block, key: bytes = KEY, name: str = "law", print_: bytes = FINGERPRINT
) -> bytes:
    return Noise(key).bits(rows, name, 2, print_)[1].tobytes()


def test_bits_change_only_with_their_inputs():
    rows = make_block()
    before = read_bits(rows)
    value, record = rows.X.copy(), rows.key.copy()
    value[1, 0] = np.nextafter(value[1, 0], 1.0)
    record[1, 15] ^= 1
    seen = {
        before,
        read_bits(replace(rows, X=value)),
        read_bits(replace(rows, key=record)),
        read_bits(rows, key=KEY[::-1]),
        read_bits(rows, name="other law"),
        read_bits(rows, print_=b"mechanisn"),
    }
    assert len(seen) == 6
    assert read_bits(replace(rows, label=np.ones(3, dtype=np.int32), start=7)) == before


def test_bits_other_records_leave_record_unchanged():
    rows, longer = make_block(3), make_block(9)
    assert read_bits(rows) == read_bits(longer)


def test_bits_minus_zero_equals_zero():
    rows = make_block()
    X = rows.X.copy()
    X[0, 0] = 0.0
    plus = Noise(KEY).bits(replace(rows, X=X), "law", 1, FINGERPRINT)
    X = X.copy()
    X[0, 0] = -0.0
    assert np.array_equal(Noise(KEY).bits(replace(rows, X=X), "law", 1, FINGERPRINT), plus)


def test_subkey_each_purpose_differs():
    noise = Noise(KEY)
    purposes = [
        ("cell", "law"),
        ("digest", "law"),
        ("record", "law"),
        ("rank", "law"),
        ("generator", "law"),
        ("derive", "law"),
        ("cell", "other"),
        ("celllaw",),
        ("cell", "law", ""),
    ]
    assert len({noise.subkey(*purpose) for purpose in purposes}) == len(purposes)
    draws = {noise.generator(name).bytes(16) for name in ("matrix", "order")}
    draws |= {noise.derive(k).generator("matrix").bytes(16) for k in ("0", "1")}
    assert len(draws) == 4
    rows = make_block()
    assert not np.array_equal(noise.ranks(rows.key, "order"), noise.ranks(rows.key, "aside"))
    assert noise.make_record_keys([b"1"], "a") != noise.make_record_keys([b"1"], "b")


def test_noise_key_has_32_bytes_and_is_not_shown():
    with pytest.raises(ValueError, match="32 bytes"):
        Noise(b"short")
    assert KEY.hex() not in repr(Noise(KEY))
    assert repr(KEY) not in repr(Noise(KEY))
