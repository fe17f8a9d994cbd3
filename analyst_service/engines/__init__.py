"""Engines run the kernels of a step, either in its process or on a Dask cluster.

Other modules use only ``EngineChoice`` of ``engine_factory``, the choice made in the
settings. ``dask_engine``, the only module that imports Dask, sends blocks to workers
and returns their results in order. ``tasks`` defines the messages to a worker, which
contain references instead of rows, and the function that it runs.
"""
