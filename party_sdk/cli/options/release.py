"""What the clusters are like: who may read it, and how it is read in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from party_sdk.cli.terminal.output import align_columns

if TYPE_CHECKING:
    from clustering_protocols.numerics.outcomes import OutcomeTable
    from clustering_protocols.numerics.profiles import FieldProfile, Profile

_MOST_FIELDS: Final = 12


def profile_lines(profiles: Sequence[Profile]) -> Iterator[str]:
    """Yield a table for each column group: fields by how far they set clusters apart."""
    for profile in profiles:
        whose = "of own rows" if profile.own else "over all parties"
        told = ", rounded" if profile.rounded else ""
        yield f"columns {profile.column + 1}, {whose}{told}:"
        if not profile.n_rows:
            yield "  too few rows for a profile"
            continue
        yield from _survival_lines(profile)
        if profile.is_description:
            from coterie_pages.result_texts import pair_profiles

            yield f"  {profile.n_rows[0]} rows"
            described = pair_profiles([profile])[0].rows
            lines = [[row.name, row.cells[0].all] for row in described]
            yield from (f"  {line}" for line in align_columns(lines))
            continue
        heads = ["", *profile.line_names, "apart"]
        rows = [heads, ["rows", *map(str, profile.n_rows), ""]]
        shown = profile.fields[:_MOST_FIELDS]
        rows += [row for field in shown for row in _field_rows(field)]
        yield from (f"  {line}" for line in align_columns(rows))
        if left := len(profile.fields) - len(shown):
            yield f"  and {left} more fields that set clusters less apart"


def _survival_lines(profile: Profile) -> Iterator[str]:
    """Yield of each time to an event its log-rank test, and the means of all lines."""
    if not profile.survival:
        return
    from coterie_pages.formatting import log_rank_text, survival_rows

    for time in profile.survival:
        unit = f" {time.unit}" if time.unit else ""
        yield f"  {time.title or time.name} until {time.event}, log-rank {log_rank_text(time)}:"
        heads = ("", "rows", "events", f"mean up to {time.most:g}{unit}")
        table = [list(heads), *map(list, survival_rows(time, profile.line_names))]
        yield from (f"    {line}" for line in align_columns(table))


def outcome_lines(tables: Sequence[OutcomeTable]) -> Iterator[str]:
    """Yield intervals and tests of described variables, a table for each profile."""
    # not above: most sessions describe nothing
    from coterie_pages.formatting import format_test, outcome_cell

    for table in tables:
        whose = "of own rows" if table.own else "over all parties"
        yield f"described variables of columns {table.column + 1}, {whose}:"
        heads = [f"cluster {label}" for label in table.clusters]
        heads += ["others"] * bool(table.others)
        rows = [["", *heads, "test"]]
        for field in table.fields:
            unit = f" ({field.unit})" if field.unit else ""
            cells = [outcome_cell(field, place) for place in range(len(heads))]
            name = f"{field.title or field.name}{unit}"
            rows.append([name, *cells, format_test(field)])
        yield from (f"  {line}" for line in align_columns(rows))
        yield from (f"  {note}" for note in table.notes)


def _field_rows(field: FieldProfile) -> Iterator[list[str]]:
    """Yield the line of a number, or one for each level."""
    unit = f" ({field.unit})" if field.unit else ""
    apart = f"{field.difference:.2f}"
    if not field.levels:
        pairs = zip(field.mean, field.spread, strict=True)
        cells = [_number(mean, spread, field) for mean, spread in pairs]
        yield [f"{field.title or field.name}{unit}", *cells, apart]
        return
    for place, level in enumerate(field.levels):
        cells = ["" if each is None else f"{each[place]:.0%}" for each in field.shares]
        yield [f"{field.title or field.name}: {level}", *cells, "" if place else apart]


def _number(mean: float | None, spread: float | None, field: FieldProfile) -> str:
    if mean is None or spread is None:
        return ""
    if field.is_date:
        from clustering_protocols.numerics.profiles import date_of

        return f"{date_of(mean)} ± {spread:.0f} d"
    return f"{mean:.4g} ± {spread:.2g}"


def documents(
    profiles: Sequence[Profile], tables: Sequence[OutcomeTable]
) -> dict[str, Any]:
    """Return profiles, and the tables of described variables, as JSON values."""
    return {
        "profiles": [profile.model_dump(mode="json") for profile in profiles],
        "outcomes": [table.model_dump(mode="json") for table in tables],
    }
