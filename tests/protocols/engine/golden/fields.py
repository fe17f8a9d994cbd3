"""One field of a record in one line: exact, and for floats also up to rounding.

    uint64[550] 17867ec880b3                       bits of words, masks, sealed bytes
    float64[60,2] b64e16d47ead ~ 1.2 -0.04 0.31    bits, and a sketch of the numbers
    json[1392] 5964d4e97bda ~ 0.5 0.01 0.2         values, or bytes that are JSON text
    3, true, "collecting", 0.25                    short values as they are

Digests are the first 12 hex digits of SHA-256. A sketch is the root mean square of the
numbers and two weighted means, to 12 digits: it changes with every number and with
their order. Sketches are equal if they differ by less than 1e-9 of the root mean square.
"""

import json
import math
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import numpy as np

TOLERANCE: Final = 1e-9
_SHORT: Final = 40
_STEPS: Final = (7, 13)  # of the weights of the two means
_PERIOD: Final = 101
_DESCRIBED: Final = re.compile(
    r"(?P<kind>\w+)\[(?P<shape>[\d,]*)\] (?P<bits>[0-9a-f]{12})( ~ (?P<sketch>.+))?"
)


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:12]


def of_array(array: np.ndarray[Any, Any]) -> str:
    if array.dtype == np.uint8 and (values := _as_json(array.tobytes())) is not None:
        return _of_json(values)
    shape = ",".join(map(str, array.shape))
    line = f"{array.dtype}[{shape}] {digest(np.ascontiguousarray(array).tobytes())}"
    return f"{line} ~ {_sketch(array)}" if array.dtype.kind == "f" else line


def of_value(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _SHORT:
        return f"text[{len(value)}] {digest(value.encode())}"
    return _of_json(value) if isinstance(value, list | dict) else value


def _of_json(values: Any) -> str:
    text = json.dumps(values, sort_keys=True)
    if len(text) <= _SHORT and not list(_floats(values)):
        return text
    line = f"json[{len(text)}] {digest(text.encode())}"
    floats = np.array(list(_floats(values)))
    return f"{line} ~ {_sketch(floats)}" if floats.size else line


def _as_json(content: bytes) -> Any:
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, list | dict) else None


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from _floats(value[key])
    elif isinstance(value, list):
        for each in value:
            yield from _floats(each)


def _sketch(array: np.ndarray[Any, Any]) -> str:
    numbers = np.nan_to_num(array.astype(np.float64).ravel())
    size, places = max(numbers.size, 1), np.arange(numbers.size)
    weights = [(places * step % _PERIOD) / _PERIOD - 0.5 for step in _STEPS]
    means = [math.fsum(weight * numbers) / size for weight in weights]
    rms = math.sqrt(math.fsum(numbers * numbers) / size)
    return " ".join(f"{each:.12g}" for each in (rms, *means))


def are_close(one: Any, other: Any) -> bool:
    """Return whether two lines are of the same numbers up to rounding.

    Lines without a number that is rounded are close if they are equal.
    """
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    found = [_DESCRIBED.fullmatch(str(line)) for line in (one, other)]
    if one == other or None in found:
        return bool(one == other)
    first, second = (each.groupdict() for each in found if each)
    if first["kind"] != second["kind"] or None in (first["sketch"], second["sketch"]):
        return False
    if first["kind"] != "json" and first["shape"] != second["shape"]:
        return False
    numbers, others = (
        np.array(each["sketch"].split(), float) for each in (first, second)
    )
    allowed = TOLERANCE * max(numbers[0], others[0])
    return bool(np.abs(numbers - others).max() <= allowed)


def may_be_bound(one: Any, other: Any) -> bool:
    """Return whether two lines may be of words or texts that a transcript decides.

    Masked words, sealed bytes, signatures and digests: they have one size.
    """
    found = [_DESCRIBED.fullmatch(str(line)) for line in (one, other)]
    first, second = (each.groupdict() if each else {} for each in found)
    same = {key: first.get(key) == second.get(key) for key in ("kind", "shape")}
    words = first.get("kind") in {"uint64", "uint8", "text"}
    return words and all(same.values())
