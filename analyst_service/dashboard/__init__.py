"""Pages under ``/ui``: what a coordinator's or administrator's key may see, to look at."""
