"""The sessions of which golden records are kept."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from clustering_protocols import catalogue
from clustering_protocols.contract import Example
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Evaluation, Release

SEED = 3
_SHOW_GEOMETRY = {"dc", "omnifc"}  # whose profiles may be told to members alone


def cases(protocol: str) -> dict[str, Example[Any]]:
    examples = catalogue.protocol(protocol).reference().examples()
    numbered = {str(number): each for number, each in enumerate(examples)}
    return numbered | dict(_joined(protocol, examples))


def _joined(protocol: str, examples: Any) -> Iterator[tuple[str, Example[Any]]]:
    runs = Evaluation(n_clusters=(2, 3))
    profiles = Release(
        profiles="members" if protocol in _SHOW_GEOMETRY else "everybody"
    )
    if protocol in {"dc", "fccm", "llf", "pqmds"}:
        aligned = next(each for each in examples if each.missing)
        yield (
            "aligned, runs and profiles",
            _described(aligned, evaluation=runs, release=profiles),
        )
    if protocol == "omnifc":
        yield (
            "runs and profiles",
            _described(examples[0], evaluation=runs, release=profiles),
        )


def _described(example: Example[Any], **more: Any) -> Example[Any]:
    groups, width = example.layout.n_column_groups, example.X.shape[1]
    sizes = [width // groups + (i < width % groups) for i in range(groups)]
    begins = [sum(sizes[:i]) for i in range(groups)]
    dictionary = [
        numeric_schema([f"x{b + i}" for i in range(size)], -60.0, 60.0)
        for b, size in zip(begins, sizes, strict=True)
    ]
    sections = {**example.sections, **more, "dictionary": dictionary}
    return replace(example, sections=sections)
