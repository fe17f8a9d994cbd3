"""Jobs: find complete rounds, step them in a worker process, store what follows."""
