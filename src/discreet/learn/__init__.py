"""From what a curator released to models: a room a family, around the procedure. Nothing here sees rows."""
