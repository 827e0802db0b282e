"""The methods as published, and the theory: for comparison, beside the path of the product."""
