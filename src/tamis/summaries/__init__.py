"""Summaries of a stream in fixed memory: counts, moments, quantiles and evidence."""
