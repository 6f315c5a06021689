"""Experiments of DCoDR (arXiv 2203.11284) with LORD, DRNET and ML-VAE, and what the paper says of them."""
