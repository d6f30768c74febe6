"""`python -m moe_theory` runs the command `moe-theory`."""

from moe_theory.cli import main

main()
