"""Layer: joined parts, keys, streams and what is drawn from them."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.product import build_case
from clustering_protocols.secrecy.prime import P

KEY: Final = bytes(range(32)).hex()
SALT: Final = bytes([7] * 32).hex()
_PRIVATE: Final = bytes([9] * 32).hex()
_PUBLIC: Final = "f3952f6611cefb5bc319f5bc2072c3035c499abbef568478df8b5a315885e87f"


def build_layer() -> Layer:
    """Return the layer."""
    return Layer(
        layer="primitives",
        about="Sections 1 and 2 of derivations.md: what everything else is made of.",
        cases=[*_joins(), *_keys(), *_draws(), *_exchanges(), *_own_chance()],
    )


def _joins() -> list[VectorCase]:
    parts: dict[str, list[Any]] = {
        "a label, a text and a number": ["coterie/line/1", "wards", 3],
        "a letter beyond ASCII, and an empty text": ["Größe", ""],
        "bytes": [{"hex": "00ff"}, "x"],
        "no part": [],
        "the largest number": [2**64 - 1],
    }
    return [build_case(n, "1", "lp", {"parts": each}) for n, each in parts.items()]


def _keys() -> list[VectorCase]:
    info: list[Any] = ["coterie/group/1", "Größe", 7, {"hex": "00ff"}]
    return [
        build_case(
            name, "2", "derive", {"secret": KEY, "salt": salt, "info": info[:size]}
        )
        for name, salt, size in (
            ("without a salt", "", 2),
            ("with a salt", SALT, 2),
            ("text, number and bytes", SALT, 4),
        )
    ]


def _draws() -> list[VectorCase]:
    small, block = [str(P), "3", str(2**64 - 1), "5", str(P), "6"], 1024
    return [
        build_case(
            "three words, then two", "2", "words", {"key": KEY, "sizes": [3, 2]}
        ),
        build_case("uniform numbers", "2", "uniform", {"key": KEY, "size": 5}),
        build_case(
            "normal numbers", "2", "normal", {"key": KEY, "size": 5}, tolerance=1e-12
        ),
        build_case("a permutation", "2", "permutation", {"key": KEY, "size": 9}),
        build_case(
            "a permutation of none", "2", "permutation", {"key": KEY, "size": 0}
        ),
        build_case(
            "residues: rejected words are drawn behind all others",
            "2",
            "residues",
            {"words": small, "size": 3},
        ),
        build_case(
            "a tag of three words",
            "10",
            "tag",
            {"key": KEY, "words": ["5", str(2**64 - 9), str(2**59)]},
        ),
        build_case(
            "a tag of more words than weights",
            "10",
            "tag",
            {"key": KEY, "words": [str(place) for place in range(block + 2)]},
        ),
        *_fixed_points(),
    ]


def _fixed_points() -> list[VectorCase]:
    half = 2.0**-43  # half a unit of the first bound, at 52 bits
    given = {
        "bounds": [178.178, 1000.0, 2.0**-128],
        "bits": 52,
        "numbers": [0.5 + half / 2, -2.5 * half, -0.0],
    }
    return [
        build_case("whole units, ties to even", "10", "fixed-point", given),
        build_case(
            "59 bits, and the finest unit that there is",
            "10",
            "fixed-point",
            {"bounds": [1.0, 1e-300], "bits": 59, "numbers": [1.0, 1e-301]},
        ),
        build_case(
            "a number beyond its bound",
            "10",
            "fixed-point",
            {"bounds": [1.0], "bits": 52, "numbers": [1.5]},
            fails="guard-refused",
        ),
    ]


def _exchanges() -> list[VectorCase]:
    two = {"private": _PRIVATE, "public": _PUBLIC}
    small = {**two, "public": "00" * 32}
    return [
        build_case("two keys", "2", "exchange", two),
        build_case(
            "a public key of small order",
            "2",
            "exchange",
            small,
            fails="key-not-authentic",
        ),
    ]


def _own_chance() -> list[VectorCase]:
    here = {"entropy": KEY, "session": "wards", "slot": "south"}
    drawn = {**here, "stage": "secrets", "purpose": "secret/row", "size": 4}
    return [
        build_case("keys of a party", "2", "party-keys", here),
        build_case(
            "chance of one attempt", "2", "own-words", {**drawn, "transcript": SALT}
        ),
        build_case(
            "chance of all attempts", "2", "own-words", {**drawn, "transcript": ""}
        ),
    ]
