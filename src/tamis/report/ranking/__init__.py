"""The report of a ranking of columns: its page, and the titles of its scores."""
