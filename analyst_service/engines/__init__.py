"""Engines run the kernels of a step: in its process, or on workers of a Dask cluster.

Other modules use only ``EngineChoice`` of ``engine_factory``, which holds
the settings' choice. ``dask_engine``, which alone imports Dask, distributes blocks and
returns results in their order. ``tasks`` defines the worker, and messages with references
instead of rows.
"""
