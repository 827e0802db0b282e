"""Markov random fields from noisy contingency tables."""
