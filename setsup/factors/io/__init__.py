"""Tables from and to other formats: Arrow, CSV, Parquet, pandas, Hugging Face, plain values."""
