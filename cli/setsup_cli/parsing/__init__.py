"""What subcommands share: options, sources, samplers and recipes as typed on the command line."""
