"""Looking after a results folder: status, integrity checks, and verification of committed rows."""
