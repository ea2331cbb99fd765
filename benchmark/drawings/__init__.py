"""The figures of studies and of trials of audits: which there are, what each shows, and how it is drawn."""
