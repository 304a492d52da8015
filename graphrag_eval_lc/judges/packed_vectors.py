"""Vectors as base64 of their bytes: as endpoints send them, and as the cache keeps them."""

import base64
from collections.abc import Sequence
from struct import pack, unpack

_BYTES = {"f": 4, "d": 8}


def unpacked(text: str, kind: str = "f") -> tuple[float, ...]:
    """Give the numbers in base64 of little-endian floats; ``kind``: ``f`` for 32 bits, ``d`` for 64.

    Raises:
        ValueError: It is none.

    Example:
        >>> unpacked("AAAAPwAAgD8=")
        (0.5, 1.0)
    """
    content = base64.b64decode(text, validate=True)
    count, rest = divmod(len(content), _BYTES[kind])
    if rest:
        raise ValueError(f"{len(content)} bytes are no vector")
    return unpack(f"<{count}{kind}", content)


def packed(vector: Sequence[float]) -> tuple[str, str]:
    """Give a vector as kind and base64: in 32 bits where these hold it exactly, else in 64.

    Example:
        >>> packed((0.5, 1.0))
        ('f', 'AAAAPwAAgD8=')
    """
    kind = "f" if _fits_32_bits(vector) else "d"
    return kind, base64.b64encode(pack(f"<{len(vector)}{kind}", *vector)).decode()


def _fits_32_bits(vector: Sequence[float]) -> bool:
    form = f"<{len(vector)}f"
    try:
        return unpack(form, pack(form, *vector)) == tuple(vector)
    except OverflowError:
        return False
