"""Views by their overlap: tables of measured pairs, and the sets that are drawn from them."""
