"""The administrator's commands, which `coterie` finds through an entry-point group."""

from clustering_protocols.common.extras import require_service

# These modules are imported whenever commands are listed, so each command imports its
# dependencies when it runs. Without the service's extra these commands do not exist.
require_service("This command belongs to the service")

from .keys import key
from .maintenance import backup, config, migrate, restore
from .server import serve

__all__ = ["backup", "config", "key", "migrate", "restore", "serve"]
