"""Looking after a results folder: status, integrity checks, verification of committed rows, and packs of runs."""
