"""The suite; `tests.twins` holds the slow, obvious version of each algorithm."""
