import sys
from pathlib import Path

# The brute-force oracles are shared with the other test directories.
sys.path.insert(0, str(Path(__file__).parents[1]))
