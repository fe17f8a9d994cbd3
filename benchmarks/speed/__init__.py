"""How long things take. Processes that these modules start keep compiled modules."""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
