"""An R script that reads the exported table and profile: base R, no package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_SCRIPT: Final = """# Reads the table with clusters and the cluster profile of session {session}.
# Base R alone. Run it in the folder of the two files.
rows <- read.csv({table}, check.names = FALSE, encoding = "UTF-8",
                 na.strings = "", stringsAsFactors = FALSE)
rows[[{cluster}]] <- factor(rows[[{cluster}]], levels = c({levels}))
profile <- read.csv({profile}, check.names = FALSE, encoding = "UTF-8",
                    na.strings = "", stringsAsFactors = FALSE)

print(table(rows[[{cluster}]], useNA = "ifany"))
of_all <- profile[profile$rows_of == "all parties", ]
if (nrow(of_all) == 0) of_all <- profile
print(head(of_all[order(-of_all$difference),
                  c("variable", "level", "cluster", "mean", "share")], 20))
"""


def r_script(
    session: str, table: str, profile: str, cluster: str, clusters: Sequence[str]
) -> str:
    """Return the script.

    table, profile: the names of the two text files.
    cluster: the column of clusters, and ``clusters`` what they are called, in order.
    """
    return _SCRIPT.format(
        session=session,
        table=_quote(table),
        profile=_quote(profile),
        cluster=_quote(cluster),
        levels=", ".join(map(_quote, clusters)),
    )


def _quote(text: str) -> str:
    """Return a text as R writes it, in ASCII: a script is read in the machine's letters."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(letter: str) -> str:
    if letter in {'"', "\\"}:
        return f"\\{letter}"
    return letter if " " <= letter <= "~" else f"\\U{ord(letter):08x}"
