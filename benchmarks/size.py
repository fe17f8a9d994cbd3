"""How much there is to maintain: code, tests, pages, commands, options and settings.

    python -m benchmarks.size [--lower]

``size.toml`` beside this file has the largest figures that a commit may have, and
``tests/unit/docs/test_size.py`` holds the tree to them. ``--lower`` lowers each limit
that is above what is measured. A commit that needs a higher limit raises it by hand,
and says why on the line of the limit.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from analyst_service.settings import Settings
from clustering_protocols import catalogue
from clustering_protocols.terms import session_risks
from party_sdk.cli import main as coterie

ROOT: Final = Path(__file__).parents[1]
LIMITS: Final = Path(__file__).with_name("size.toml")
PRODUCT: Final = re.compile(
    r"(analyst_service|clustering_protocols|coterie\w*|party_sdk)(/.*)?\.(py|j2)"
)
# pages that a program writes, and the list of changes
GENERATED: Final = re.compile(
    r"CHANGELOG\.md|docs/(messages|threat-tests)\.md|spec/(calls|example|messages/.*)\.md"
)
DESCRIPTIONS: Final = {
    "product_lines": "product, lines of Python and templates",
    "product_modules": "modules of the product",
    "test_lines": "tests, lines of Python",
    "benchmark_lines": "benchmarks, lines of Python",
    "words": "words of pages, without CHANGELOG.md and generated tables",
    "commands": "commands",
    "options": "options of all commands",
    "settings": "settings of the analyst",
    "risk_codes": "risk codes of protocols and sessions",
}


def measure() -> dict[str, int]:
    """Return each figure of ``DESCRIPTIONS`` for the files that git tracks."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    texts = {
        name: (ROOT / name).read_text()
        for name in names
        if name.endswith((".py", ".j2", ".md")) and (ROOT / name).exists()
    }

    def count_lines(pattern: re.Pattern[str]) -> int:
        return sum(
            text.count("\n") for name, text in texts.items() if pattern.fullmatch(name)
        )

    commands = list(iterate_commands(coterie))
    n_codes = len(session_risks.RISKS) + sum(
        len(protocol.risks) for protocol in catalogue.catalogue().values()
    )
    return {
        "product_lines": count_lines(PRODUCT),
        "product_modules": sum(
            name.endswith(".py") for name in filter(PRODUCT.fullmatch, texts)
        ),
        "test_lines": count_lines(re.compile(r"tests/.*\.py")),
        "benchmark_lines": count_lines(re.compile(r"benchmarks/.*\.py")),
        "words": sum(
            len(text.split())
            for name, text in texts.items()
            if name.endswith(".md") and not GENERATED.fullmatch(name)
        ),
        "commands": len(commands),
        "options": sum(
            isinstance(parameter, click.Option)
            for command in commands
            for parameter in command.params
        ),
        "settings": len(Settings.model_fields),
        "risk_codes": n_codes,
    }


def iterate_commands(command: click.Command) -> Iterator[click.Command]:
    """Yield the commands below a group, without the groups themselves."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (child := command.get_command(context, name)) is not None:
                yield from iterate_commands(child)
    else:
        yield command


def read_limits() -> dict[str, int]:
    """Return the largest figure that is allowed, by name."""
    limits: dict[str, int] = tomllib.loads(LIMITS.read_text())
    return limits


def main() -> None:
    """Print what is measured beside what is allowed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lower", action="store_true", help="write smaller figures")
    lower = parser.parse_args().lower
    figures, limits = measure(), read_limits()
    for name, description in DESCRIPTIONS.items():
        print(f"{description:60} {figures[name]:9,} of {limits[name]:9,}")
    if lower:
        text = LIMITS.read_text()
        for name, figure in figures.items():
            if figure < limits[name]:
                text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {figure}", text)
        LIMITS.write_text(text)


if __name__ == "__main__":
    main()
