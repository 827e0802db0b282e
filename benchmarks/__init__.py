"""Benchmarks: every figure that the documentation claims. Run one with ``./discreet bench NAME``."""
