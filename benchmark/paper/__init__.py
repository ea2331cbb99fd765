"""The paper's numbers, and what our rows say about them."""
