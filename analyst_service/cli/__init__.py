"""The administrator's commands; `coterie` finds them through an entry-point group."""

from clustering_protocols.extras import require_service

# What a command needs is imported when it runs: these modules are read for every list
# of commands. It is found now, though: without the extra there are no such commands.
require_service("This command is of the service")

from .auditing import audit  # noqa: E402
from .backups import backup, restore  # noqa: E402
from .config import config  # noqa: E402
from .keys import key  # noqa: E402
from .migrating import migrate  # noqa: E402
from .serving import serve  # noqa: E402

__all__ = ["audit", "backup", "config", "key", "migrate", "restore", "serve"]
