"""`python -m fca` is the command line."""

from fca.cli import main

main()
