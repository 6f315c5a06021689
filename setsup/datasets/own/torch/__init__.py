"""A user's own data: map-style datasets of torch, and anything else with items by number."""
