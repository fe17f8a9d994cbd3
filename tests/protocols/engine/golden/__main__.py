"""Compare golden records, or write them anew: ``make golden GOLDEN=--help``."""

import argparse
import sys

from tests.protocols.engine.golden import baseline

if not baseline.is_ours():  # before anything imports numpy
    baseline.start_again()

from clustering_protocols import catalogue, simulation
from clustering_protocols.common.errors import VersionMismatch
from tests.protocols.engine.golden import files
from tests.protocols.engine.golden.recording import Forgetful


def main() -> int:
    parser = argparse.ArgumentParser(prog="make golden", description=files.__doc__)
    parser.add_argument("protocols", nargs="*", help="all by default")
    parser.add_argument("--write", action="store_true", help="write what comes now")
    parser.add_argument(
        "--new-terms",
        action="store_true",
        help="play under the terms that are drawn up now: every secret changes",
    )
    parser.add_argument(
        "--killed",
        action="store_true",
        help="let every role forget all but its bytes before every answer and step, "
        "and parties answer in the reverse order",
    )
    chosen = parser.parse_args()
    differ = False
    for protocol in chosen.protocols or catalogue.catalogue():
        kind = Forgetful if chosen.killed else simulation.Session
        flags = "--write"
        try:
            if chosen.write:
                files.write(protocol, new_terms=chosen.new_terms)
            found = files.compare(protocol, kind)
        except VersionMismatch:
            reason = f"{protocol}: the terms in the file have another version"
            flags, found = "--write --new-terms", files.Compared(0, [reason])
        differ |= bool(found.differences)
        equal = "written" if chosen.write else "as kept"
        said = found.differences or [f"{protocol}: {found.n_records} records, {equal}"]
        if found.differences:
            said.append(f'If this is intended: make golden GOLDEN="{protocol} {flags}"')
        sys.stdout.write("\n".join(said) + "\n")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
