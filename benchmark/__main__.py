"""`python -m benchmark` is `linc-bench`."""

from benchmark.cli import main

raise SystemExit(main())
