"""A user's own data: tables and Hugging Face datasets."""
