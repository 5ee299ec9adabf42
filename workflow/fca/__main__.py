from fca.cli import main

main()
