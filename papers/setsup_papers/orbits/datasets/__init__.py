"""Orbits of faces in videos."""
