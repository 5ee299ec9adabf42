"""The command line, `fca`."""
