"""What is published: the release file, how far its noise can have moved answers, and what must never be one."""

from .certificate import Certificate
from .release import DRAWS, Release

__all__ = ["DRAWS", "Certificate", "Release"]
