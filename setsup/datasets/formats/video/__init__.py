"""Frames of videos."""
