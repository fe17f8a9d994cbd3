"""Where the kernels of a step run: in its process, or on the workers of a Dask cluster.

``engine_factory`` chooses by the settings: its ``EngineChoice`` is all that others use.
``dask_engine`` hands blocks out and puts results in their order; it alone imports Dask.
``tasks`` is what travels, with the place of rows where the rows were, and what a worker
does.
"""
