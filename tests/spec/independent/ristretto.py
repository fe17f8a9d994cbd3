"""Section 11, intersection: ristretto255 as RFC 9496 writes it, slowly."""

from __future__ import annotations

from typing import NamedTuple

from .derivations import Refusal, Stream

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


class Point(NamedTuple):
    """Section 11, intersection: a point in extended coordinates."""

    x: int
    y: int
    z: int
    t: int


def _is_negative(number: int) -> bool:
    """Section 11, RFC 9496, 4.1: the sign of a number."""
    return number % P % 2 == 1


def _absolute(number: int) -> int:
    """Section 11, RFC 9496, 4.1: CT_ABS."""
    return (-number if _is_negative(number) else number) % P


def _root_of_ratio(u: int, v: int) -> tuple[bool, int]:
    """Section 11, RFC 9496, 4.2: SQRT_RATIO_M1."""
    r = u * v**3 * pow(u * v**7, (P - 5) // 8, P) % P
    check, u = v * r * r % P, u % P
    flipped, turned = check == -u % P, check == -u * SQRT_M1 % P
    if flipped or turned:
        r = r * SQRT_M1 % P
    return check == u or flipped, _absolute(r)


_, _INVERSE_ROOT = _root_of_ratio(1, -1 - D)
_ROOT = P - _root_of_ratio(-D - 1, 1)[1]
"""Section 11, RFC 9496, 4.1: SQRT_AD_MINUS_ONE, the odd one of the two roots."""


def add(a: Point, b: Point) -> Point:
    """Section 11, RFC 8032, 5.1.4: the sum of two points."""
    A, B = (a.y - a.x) * (b.y - b.x), (a.y + a.x) * (b.y + b.x)
    C, E = 2 * D * a.t * b.t, 2 * a.z * b.z
    e, f, g, h = B - A, E - C, E + C, B + A
    return Point(e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(scalar: int, point: Point) -> Point:
    """Section 11, intersection: a point, so many times."""
    found = Point(0, 1, 1, 0)
    multiples = [found]
    for _ in range(15):
        multiples.append(add(multiples[-1], point))
    for digit in f"{scalar:x}":
        for _ in range(4):
            found = add(found, found)
        found = add(found, multiples[int(digit, 16)])
    return found


def read_point(encoded: bytes, problem: str) -> Point:
    """Section 11, RFC 9496, 4.3.1: a point; what is none is refused with a problem."""
    s = int.from_bytes(encoded, "little")
    if len(encoded) != 32 or not 0 < s < P or _is_negative(s):
        raise Refusal(problem)
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-(D * u1 * u1) - u2 * u2) % P
    square, root = _root_of_ratio(1, v * u2 * u2)
    x = _absolute(2 * s * root * u2)
    y = u1 * root * root * u2 * v % P
    if not square or _is_negative(x * y) or y == 0:
        raise Refusal(problem)
    return Point(x, y, 1, x * y % P)


def write_point(point: Point) -> bytes:
    """Section 11, RFC 9496, 4.3.2: the bytes of a point."""
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y), x * y
    _, root = _root_of_ratio(1, u1 * u2 * u2)
    den1, den2 = root * u1 % P, root * u2 % P
    inverse = den1 * den2 * t % P
    if _is_negative(t * inverse):
        x, y, den2 = y * SQRT_M1, x * SQRT_M1, den1 * _INVERSE_ROOT
    if _is_negative(x * inverse):
        y = -y
    return _absolute(den2 * (z - y)).to_bytes(32, "little")


def hash_to_point(wide: bytes) -> Point:
    """Section 11, RFC 9496, 4.3.4: the point of 64 uniform bytes."""
    halves = (int.from_bytes(wide[at : at + 32], "little") for at in (0, 32))
    return add(*(_map(half % 2**255 % P) for half in halves))


def _map(t: int) -> Point:
    """Section 11, RFC 9496, 4.3.4: MAP."""
    r = SQRT_M1 * t * t % P
    u, v = (r + 1) * (1 - D * D) % P, (-1 - r * D) * (r + D) % P
    square, s = _root_of_ratio(u, v)
    if not square:
        s = -_absolute(s * t) % P
    c = -1 if square else r
    n = (c * (r - 1) * (D - 1) ** 2 - v) % P
    w0, w1 = 2 * s * v, n * _ROOT
    w2, w3 = 1 - s * s, 1 + s * s
    return Point(w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P)


def draw_scalar(stream: Stream) -> int:
    """Section 11, intersection: a scalar of the next 64 bytes of a stream."""
    return int.from_bytes(stream.words(8).tobytes(), "little") % ORDER
