"""Other ways to run the same rounds."""

from moe_theory.bench.setting import Contender

PEERS: dict[str, Contender] = {}
