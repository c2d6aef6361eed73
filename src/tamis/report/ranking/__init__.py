"""The report of a ranking of columns: its page, and what its scores are called."""
