"""glTF 2.0 files: every feature is applied, named in a log line, or refused by name."""
