"""Meshes, point clouds, voxels and camera trajectories."""
