"""The training loop, and the recipes that plug into it."""
