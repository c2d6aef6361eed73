"""Tests of active feature acquisition."""
