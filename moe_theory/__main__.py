"""`python -m moe_theory` is the command `moe-theory`."""

from moe_theory.cli import main

main()
