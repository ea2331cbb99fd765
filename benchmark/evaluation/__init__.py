"""From records, scores and answer keys to rows of the committed CSV tables."""
