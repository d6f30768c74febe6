"""`python -m moe_theory.cli` is `moe-theory`."""

from moe_theory.cli import main

main()
