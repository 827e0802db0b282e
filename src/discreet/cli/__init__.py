"""The command line. ``main`` is the entry point; nothing slow is imported before a command needs it."""

from .app import main, run

__all__ = ["main", "run"]
