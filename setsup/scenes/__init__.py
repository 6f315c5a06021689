"""Scenes: what stands where, how it is lit and framed; numpy only, no GL."""
