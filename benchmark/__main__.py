"""`python -m benchmark` is `linc-bench`."""

from benchmark.cli.command_line import main

raise SystemExit(main())
