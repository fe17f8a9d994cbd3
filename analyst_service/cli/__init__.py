"""The administrator's commands; `coterie` finds them through an entry-point group."""

from clustering_protocols.common.extras import require_service

# These modules are imported for every list of commands, so each command imports what it
# needs when it runs. Without the service's extra these commands do not exist.
require_service("This command belongs to the service")

from .keys import key
from .maintenance import backup, config, migrate, restore
from .server import serve

__all__ = ["backup", "config", "key", "migrate", "restore", "serve"]
