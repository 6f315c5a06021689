"""Meshes: made, read from files, stored, and repaired where surfaces coincide."""
