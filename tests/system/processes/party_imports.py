"""All parties of a session in one process, which prints its modules when it ends.

Run as a program, with a folder that holds ``session.json`` and a table for each slot.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coterie import Party, Policy


def main(folder: Path) -> None:
    session = json.loads((folder / "session.json").read_text())
    policy = Policy(
        accepted_risks=frozenset(session["risks"]), least_known=0, minimum_rows=1
    )

    def take_part(slot: str, invitation: str) -> None:
        with Party.join(invitation, policy=policy, home=folder / slot) as party:
            party.run(folder / f"{slot}.csv", id_column="id")

    invitations = session["invitations"]
    with ThreadPoolExecutor(len(invitations)) as pool:
        list(pool.map(take_part, invitations, invitations.values()))
    sys.stdout.write(json.dumps(list(sys.modules)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
