"""What people look at: the release card, the report page, the page to explore a model, and plots for Python."""
