"""Other libraries' models in Tamis, and Tamis' in theirs; each module imports one library."""
