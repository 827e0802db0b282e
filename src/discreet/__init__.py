"""discreet: discrete graphical models from sensitive records, under differential privacy."""

from ._version import __version__

__all__ = ["__version__"]
