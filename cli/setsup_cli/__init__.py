"""The ``setsup`` command: one module per subcommand; each parses options, calls the library and prints."""
