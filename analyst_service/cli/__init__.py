"""The administrator's commands; `coterie` finds them through an entry-point group."""

from importlib.util import find_spec

# What a command needs is imported when it runs: these modules are read for every list
# of commands. It is found now, though: without the extra there are no such commands.
if find_spec("sqlalchemy") is None:
    raise ModuleNotFoundError(
        "The service needs the extra 'analyst'.", name="sqlalchemy"
    )

from .backups import backup, restore
from .keys import key
from .migrating import migrate
from .serving import serve

__all__ = ["backup", "key", "migrate", "restore", "serve"]
