"""How a group of rows is chosen, and rows of it."""
