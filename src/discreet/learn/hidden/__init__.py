"""What records do not show: values that are missing at random, and a class that each record belongs to."""
