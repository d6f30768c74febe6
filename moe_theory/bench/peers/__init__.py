"""Peers: other ways to run the very rounds that the package runs, written as one would in their library."""

from moe_theory.bench.peers import numpy_batched, numpy_loop, textbook, textbook_edge
from moe_theory.bench.setting import Contender, Run, Setting


def _prepare_torch(setting: Setting) -> Run:
    from moe_theory.bench.peers import torch_batched  # torch is optional, and slow to import

    return torch_batched.prepare(setting)


def _prepare_textbook(setting: Setting) -> Run:
    return (textbook_edge if setting.system == "edge" else textbook).prepare(setting)


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
            "batched NumPy",
            "all replicates at once, batch last, one Python loop over the rounds",
            ("continual",),
            numpy_batched.prepare,
        ),
        Contender(
            "batched Torch",
            "the same in PyTorch, without autograd",
            ("continual",),
            _prepare_torch,
            requires="torch",
        ),
        Contender(
            "textbook vmap(scan)",
            "JAX by the book: jit(vmap(scan)), batch first, gathers and Cholesky",
            ("continual", "edge"),
            _prepare_textbook,
        ),
    )
}
