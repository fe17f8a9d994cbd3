"""Sessions in one process, to try methods: on one table dealt out, or on several."""
