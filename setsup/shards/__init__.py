"""WebDataset tars with a factor index: written, opened at random from a disk or a store, and indexed where others
wrote them."""
