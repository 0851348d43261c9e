"""`python -m packtool`."""

from packtool.cli import main

main()
