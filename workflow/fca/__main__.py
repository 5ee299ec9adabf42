"""`python -m fca` is the command line."""

from fca.cli.app import main

main()
