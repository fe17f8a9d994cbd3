"""What several tests use: no tests, no fixtures.

Each process of the tests, and each that it starts, computes in one thread: as many of
them run at once as there are processors, and threads of several would wait for each
other longer than they work. NumPy and scikit-learn read this when they are imported.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
