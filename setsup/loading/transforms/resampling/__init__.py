"""Images, labels, depths, normals and points by the matrix of each image, once."""
