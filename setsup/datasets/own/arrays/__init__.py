"""A user's own data: numpy arrays, in memory or in ``.npy`` and ``.npz`` files."""
