"""The ``setsup`` command: one module a verb; each parses, calls the library and prints."""
