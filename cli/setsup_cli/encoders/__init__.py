"""Subcommands with ``--encoder``: a frozen encoder in place of a run."""
