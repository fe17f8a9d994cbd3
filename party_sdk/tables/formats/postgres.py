"""What a query of PostgreSQL returns, copied out as text by the server itself."""

from __future__ import annotations

from pathlib import Path

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.common.extras import require_extra
from party_sdk.tables.formats.copied_source import CopiedSource
from party_sdk.tables.parsing.dialect import Dialect


def query_source(
    url: str, query: str | None, said: Dialect, folder: Path
) -> CopiedSource:
    """Return the rows of a query; the transaction may read and not write.

    Raises InvalidParameters if there is no query, or psycopg is not installed.
    Raises InvalidData if the server refuses. Neither the address nor the server's words
        are repeated: they may hold a password, or values.
    """
    if not query:
        raise InvalidParameters("A database needs a query: --query 'SELECT …'.")
    require_extra("postgres", "PostgreSQL is read by psycopg", "psycopg")
    import psycopg

    out = f"COPY ({query.strip().rstrip(';')}) TO STDOUT (FORMAT csv, HEADER)"
    copy = folder / "query.csv"
    try:
        with psycopg.connect(url) as connection:
            connection.read_only = True
            with (
                connection.cursor() as cursor,
                copy.open("wb") as file,
                cursor.copy(out.encode()) as pieces,
            ):
                for piece in pieces:
                    file.write(piece)
    except psycopg.OperationalError:
        raise InvalidData(
            "The database does not answer, or refuses this user."
        ) from None
    except psycopg.Error as error:
        code = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
        raise InvalidData(f"The database refuses the query{code}.") from None
    return CopiedSource(copy, said)
