"""The administrator's commands; `coterie` finds them through an entry-point group."""

from importlib.util import find_spec

# What a command needs is imported when it runs: these modules are read for every list
# of commands. It is found now, though: without the extra there are no such commands.
if find_spec("sqlalchemy") is None:
    raise ModuleNotFoundError(
        "The service needs the extra 'analyst'.", name="sqlalchemy"
    )

from .auditing import audit
from .backups import backup, restore
from .config import config
from .keys import key
from .serving import migrate, serve

__all__ = ["audit", "backup", "config", "key", "migrate", "restore", "serve"]
