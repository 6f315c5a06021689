"""The sampler audit, in parts: tables of labels, samplers, what their documentation promises, and what is counted."""
