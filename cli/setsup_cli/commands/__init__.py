"""One module per subcommand: its options, its help and what it does."""
