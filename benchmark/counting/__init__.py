"""How many labels are wrong: at least, from labels and images alone; and with bounds, from a review."""
