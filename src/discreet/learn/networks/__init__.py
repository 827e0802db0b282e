"""Bayesian networks: a column with its parents, table by table."""
