"""Chains through time: windows of people's sequences, with the same potentials at every step, or others at each."""
