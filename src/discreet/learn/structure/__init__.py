"""Learners of the graph: which columns interact, under (ε, δ), zCDP and pure DP."""
