"""Encoders and generators of DCoDR and of the methods that its paper compares it with."""
