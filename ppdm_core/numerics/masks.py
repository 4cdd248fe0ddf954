"""Masks that hide the numbers of each site and cancel in the sum over all sites.

Every pair of sites shares a secret. One of them adds the numbers that follow from it, the other
subtracts them, modulo 2^128. The masked numbers of all sites together reveal their sum; those of
fewer sites, nothing (Bonawitz et al. 2017, section 4, without dropouts). The secrets must not be
known to the receiver, and each context may be used once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ppdm_core.numerics.noise import frame_parts

MODULUS_BYTES = 16
MODULUS = 1 << (8 * MODULUS_BYTES)


def add_masks(
    values: Sequence[int], own: str, secrets: Mapping[str, bytes], context: Sequence[str]
) -> list[int]:
    """Return the numbers of site ``own`` with its masks, modulo 2^128.

    ``secrets`` holds what it shares with each other site by name. ``context`` names roll, round and
    everything else that the masks are bound to. Masks of fewer numbers begin like those of more, so
    it must name their count.
    """
    masked = [value % MODULUS for value in values]
    for other, secret in secrets.items():
        first, second = sorted((own, other))
        sign = 1 if own == first else -1
        masks = expand_mask(secret, len(values), (*context, first, second))
        masked = [
            (value + sign * mask) % MODULUS for value, mask in zip(masked, masks, strict=True)
        ]
    return masked


def expand_mask(secret: bytes, count: int, context: Sequence[str]) -> list[int]:
    """Return as many pseudo-random numbers below 2^128."""
    raw = hashlib.shake_256(frame_parts("ppdm-mask-1", secret, *context)).digest(
        MODULUS_BYTES * count
    )
    return unpack_values(raw)


def sum_masked(parts: Iterable[Sequence[int]]) -> list[int]:
    """Return the sum over all sites as signed numbers; the masks cancel."""
    totals = [sum(column) % MODULUS for column in zip(*parts, strict=True)]
    return [total - MODULUS if total >= MODULUS // 2 else total for total in totals]


def hide_flags(flags: Sequence[bool], random: bytes) -> list[int]:
    """Return 0 for each false flag and a random number for each true one.

    A sum over sites is 0 if the flag is false at all of them; otherwise it is random, and does not
    show at how many sites it is true. ``random`` has 16 bytes for each flag.
    """
    drawn = unpack_values(random)
    return [number if flag else 0 for flag, number in zip(flags, drawn, strict=True)]


def pack_values(values: Iterable[int]) -> bytes:
    """Return numbers below 2^128 as bytes."""
    return b"".join(value.to_bytes(MODULUS_BYTES, "little") for value in values)


def unpack_values(raw: bytes) -> list[int]:
    """Return the numbers that ``pack_values`` turned into bytes; raise ValueError for others."""
    if len(raw) % MODULUS_BYTES:
        raise ValueError("The bytes do not hold complete numbers.")
    parts = range(0, len(raw), MODULUS_BYTES)
    return [int.from_bytes(raw[start : start + MODULUS_BYTES], "little") for start in parts]


def mask_array(
    values: NDArray[np.int64], own: str, secrets: Mapping[str, bytes], context: Sequence[str]
) -> NDArray[np.uint64]:
    """Return an array of whole numbers with the masks of party ``own``, modulo 2^64."""
    masked = values.astype(np.uint64)  # modulo 2^64
    for other, secret in secrets.items():
        first, second = sorted((own, other))
        frame = frame_parts("ppdm-array-mask-1", secret, *context, first, second)
        raw = hashlib.shake_256(frame).digest(8 * values.size)
        mask = np.frombuffer(raw, dtype="<u8").astype(np.uint64).reshape(values.shape)
        masked = masked + mask if own == first else masked - mask
    return masked


def sum_masked_arrays(parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.int64]:
    """Return the sum over all parties as signed numbers; the masks cancel."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total.view(np.int64)
