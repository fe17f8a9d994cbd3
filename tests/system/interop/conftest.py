"""All of these tests need Node 20 and the client's packages."""

import pytest

from tests.system.interop.client_process import require_client


@pytest.fixture(autouse=True)
def client() -> None:
    require_client()
