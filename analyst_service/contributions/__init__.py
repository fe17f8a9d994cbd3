"""Tasks out, contributions in. Uploads only store; they know no jobs."""
