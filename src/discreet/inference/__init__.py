"""Potentials in, beliefs out: exact inference, belief propagation, maxima and sampling."""
