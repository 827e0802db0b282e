"""From measurements, or through a curator, to models. One algorithm a file; nothing here sees rows."""
