"""The report: tables, figures, page and README blocks, made from the CSV tables alone."""
