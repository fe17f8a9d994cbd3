"""Where the kernels of a step run: in its process, or on the workers of a Dask cluster.

``opening`` chooses by the settings. ``dask_engine`` hands blocks out and puts results in
their order, ``cluster`` talks to Dask, ``references`` puts the place of rows where the
rows were, and ``tasks`` is what a worker does. Only ``cluster`` imports Dask.
"""
