"""Markov random fields of binary columns, from noisy sums of parities."""
