"""What the papers prove, computed: bounds, hard instances, and how far to trust them."""
