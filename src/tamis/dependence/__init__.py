"""Measures and tests of the dependence between variables."""
