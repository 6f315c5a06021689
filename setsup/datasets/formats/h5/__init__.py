"""HDF5: chunks, cells and images."""
