"""Classifiers that choose their own features."""

from tamis.learners.sparse_fsa import SparseFSA

__all__ = ["SparseFSA"]
