"""Private sparse regressions, and the fields they are read off from."""
