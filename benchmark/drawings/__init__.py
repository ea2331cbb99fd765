"""The figures of a study: which there are, what each shows, and how it is drawn."""
