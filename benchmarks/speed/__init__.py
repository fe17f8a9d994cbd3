"""How long things take. The processes that are started here keep their compiled modules."""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
