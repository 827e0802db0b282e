"""What learners ask, each with its sensitivities and its argument."""
