"""Peers: other ways to run the very rounds that the package runs, written as one would in their library."""

from moe_theory.bench.peers import numpy_loop, textbook
from moe_theory.bench.setting import Contender

PEERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender(
            "NumPy loop",
            "one replicate after another in plain NumPy",
            ("continual",),
            numpy_loop.prepare,
            one_by_one=True,
        ),
        Contender(
            "textbook vmap(scan)",
            "JAX by the book: jit(vmap(scan)), batch first, gathers and Cholesky",
            ("continual",),
            textbook.prepare,
        ),
    )
}
