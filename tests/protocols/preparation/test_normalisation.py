"""Normalisation steps and id patterns agree with plain implementations."""

import pytest
from pydantic import ValidationError

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.shared_stages.alignment.id_patterns import (
    draft_patterns,
    fit_patterns,
)
from clustering_protocols.shared_stages.alignment.identifiers import (
    distinct_ids,
    join_parts,
)
from clustering_protocols.shared_stages.alignment.params import Alignment

USUAL = Alignment().normalisation


def test_an_id_without_a_digit_is_no_number_of_zeros() -> None:
    with pytest.raises(InvalidData, match="Row 2 has no id"):
        distinct_ids(["K1", "unknown"], [*USUAL, "digits", "zero-pad:8"], "error")


@pytest.mark.parametrize("wrong", ["zero-pad", "zero-pad:0", "zero-pad:123", "Digits"])
def test_no_other_step_is_known(wrong: str) -> None:
    with pytest.raises(ValidationError):
        Alignment.model_validate({"normalisation": [wrong]})
    with pytest.raises(ValidationError):
        Alignment.model_validate({"normalisation": ["zero-pad:8", "zero-pad:9"]})


IDS = [f"KV-{number:08d}" for number in range(345_678, 10**8, 2_345_678)]


def test_a_pattern_that_is_drafted_fits_what_it_is_drafted_from() -> None:
    assert draft_patterns(IDS) == ("KV-99999999",)
    assert (
        fit_patterns(("KV-99999999",), IDS, USUAL).describe_misfits(["KV-99999999"])
        == ""
    )
    assert draft_patterns([join_parts(["Ward 1", f"{n:02}"]) for n in range(20)]) == (
        "WArd 9",
        "99",
    )
    assert draft_patterns(["Bo-1", "Xy-2"]) == ("AA-9",)
    assert draft_patterns([]) == ()


@pytest.mark.parametrize(
    ("pattern", "spelt", "fitting", "steps"),
    [
        ("99999999", [name[3:].lstrip("0") for name in IDS], None, ("strip-zeros",)),
        (
            "KV-99999999",
            [name.replace("-", " ") for name in IDS],
            0,
            ("no-punctuation",),
        ),
        ("KV-99999999", [name.lower() for name in IDS], len(IDS), ()),
        ("AA-99999999", IDS, len(IDS), ()),
        ("99999999", IDS, 0, ("digits",)),
    ],
)
def test_the_least_steps_that_mend_most_are_named(
    pattern: str, spelt: list[str], fitting: int | None, steps: tuple[str, ...]
) -> None:
    found = fit_patterns((pattern,), spelt, USUAL)
    assert found.steps == steps
    assert found.n_mended == len(spelt)
    assert fitting is None or found.n_fitting == fitting
    again = fit_patterns((pattern,), spelt, [*USUAL, *found.steps])
    assert again.n_fitting == len(spelt)


def test_nothing_mends_what_is_something_else() -> None:
    found = fit_patterns(("99999999",), ["Anna", "Bo"], USUAL)
    assert (found.n_fitting, found.n_mended) == (0, 0)
    assert found.describe_misfits(["99999999"]) == (
        "0 of 2 ids look like the session's '99999999'; others may be linked to nobody."
    )
