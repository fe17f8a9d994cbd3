"""What some tests need beside Python. If it is missing, they are left out."""

import os
from dataclasses import dataclass
from typing import NoReturn

import pytest


@dataclass(frozen=True)
class Need:
    """A server or a program; ``required_by``: the variable that makes it a must."""

    name: str
    required_by: str
    how: str

    @property
    def absence(self) -> str:
        """How the reason of each test that was left out for it begins."""
        return f"without {self.name}: "


POSTGRESQL = Need(
    "PostgreSQL",
    "COTERIE_REQUIRE_POSTGRES",
    "name a database in COTERIE_TEST_POSTGRES_URL whose user may create databases",
)
NGINX = Need("nginx", "COTERIE_REQUIRE_TOOLS", "install nginx")
COMPOSE = Need("docker-compose", "COTERIE_REQUIRE_TOOLS", "install docker-compose")
PROMTOOL = Need("promtool", "COTERIE_REQUIRE_TOOLS", "install prometheus")
CHROMIUM = Need("chromium", "COTERIE_REQUIRE_TOOLS", "install chromium")
NODE = Need(
    "Node 20",
    "COTERIE_REQUIRE_TOOLS",
    "install npm and Node 20 or newer, and run: make client",
)
ALL = (POSTGRESQL, NGINX, COMPOSE, PROMTOOL, CHROMIUM, NODE)


def leave_out(need: Need, why: str) -> NoReturn:
    """Skip the test that needs this; fail it if nothing may be left out."""
    if os.environ.get(need.required_by):
        pytest.fail(need.absence + why)
    pytest.skip(need.absence + why)
