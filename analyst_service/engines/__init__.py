"""Where the kernels of a step run: in its process, or on the workers of a Dask cluster.

Other modules use only ``EngineChoice`` of ``engine_factory``, which the settings decide.
``dask_engine``, which alone imports Dask, distributes blocks and returns results in their
order. ``tasks`` defines what is sent, with references in place of rows, and the worker.
"""
