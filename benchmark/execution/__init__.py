"""Where work runs (this process, worker processes, a Dask cluster) and how progress is shown."""
