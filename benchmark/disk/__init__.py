"""Files that are whole or absent, the layout of a results folder, its CSV tables and their one schema."""
