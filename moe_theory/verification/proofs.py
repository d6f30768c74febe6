"""Runs of the programs of proofs, with checks of their output and exit status."""

import ast
import subprocess
import sys
from collections.abc import Iterable

from moe_theory.core.errors import DeclarationError, shortened
from moe_theory.verification.verdict import Statement, source_of

OWN = f"{__name__.partition('.')[0]}."  # prefix of this distribution's packages


def require_proofs(statements: Iterable[Statement]) -> None:
    """Run each proof of the statements once, except this distribution's. Raises: the errors of `require_proof`."""
    names = {}
    for statement in statements:
        names |= {(proof.path, kind): statement.name for kind, proof in statement.proofs.items()}
    for (path, kind), name in names.items():
        if not path.startswith(OWN):
            require_proof(path, kind, name)


def require_proof(path: str, kind: str, name: str) -> None:
    """Run the program of a "disproof", "proof" or "derivation" of the statement `name`. Raises: DeclarationError."""
    source = source_of(path)
    reason = end_fault(source)
    if not reason:
        # Option -I ignores the current folder and Python's environment variables.
        ended = subprocess.run([sys.executable, "-I", "-c", source], capture_output=True, text=True, check=False)
        reason = output_fault(kind, ended.returncode, ended.stdout, ended.stderr)
    if reason:
        raise DeclarationError(
            f"{name} is not proved: its {kind}, {path}, fails a check ({reason}). Correct or remove the program."
        )


def end_fault(source: str) -> str:
    """Return why a program's exit status does not depend on its result, or ""."""
    try:
        last = ast.parse(source).body[-1]
    except SyntaxError as failure:
        return str(failure)
    match last:
        case ast.Expr(ast.Call(func, [result, *_])) if ast.unparse(func) == "sys.exit":
            if not isinstance(result, ast.Constant):
                return ""
    return "its last line must be sys.exit(...) with its result, such as not holds"


def output_fault(kind: str, code: int, output: str, errors: str = "") -> str:
    *sides, end = output.splitlines() or [""]
    if code:
        last_line = "".join((errors.strip() or end).splitlines()[-1:])  # empty without output
        return f"it exits with {code}: {shortened(last_line)}"
    mark = "violated: " if kind == "disproof" else "proved: "
    if not (sides and end.startswith(mark)):
        return f"it must print both sides, and then a line that begins with {mark!r} instead of {shortened(end)}"
    return ""
