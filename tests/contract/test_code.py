"""Style of the code: catches kinds of lines that are read twice, once there are more of them than today."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "moe_theory"
SCRIPTS = {"proofs", "counterexamples"}
LONGEST = 60  # lines of a function
MOST = {  # of each kind, per 1,000 lines
    "vague name": 2.2,
    "conditional expression": 10.2,
    "dictionary of anything": 2.4,
    "splat of a name": 3.25,
    "call with six positions": 1.8,
    "conditional expression in another": 0.0,
    "comprehension with several loops": 0.1,
    "two values assigned in one line": 0.05,
    "walrus": 0.1,
    "long function": 0.0,
    "stack frame": 0.0,
}
VAGUE = frozenset(
    """
    each found own known given kept left said told of its what here other others chosen shown taken asked made wanted
    begun done seen tried drawn about apart rest their whole item thing obj res tmp val entry
    """.split()
)


def kinds_of(tree: ast.Module) -> Iterator[str]:
    """Return the kind of each node that has one."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VAGUE:
                yield "vague name"
            case ast.IfExp(body=body, orelse=orelse):
                yield "conditional expression"
                if isinstance(body, ast.IfExp) or isinstance(orelse, ast.IfExp):
                    yield "conditional expression in another"
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() if len(node.generators) > 1:
                yield "comprehension with several loops"
            case ast.Assign(targets=[ast.Tuple()], value=ast.Tuple()):
                yield "two values assigned in one line"
            case ast.Subscript(value=ast.Name(id="dict" | "Mapping")) if ast.unparse(node.slice) == "(str, Any)":
                yield "dictionary of anything"
            case ast.Call(args=arguments, keywords=keywords):
                if len(arguments) >= 6:
                    yield "call with six positions"
                if any(each.arg is None and isinstance(each.value, ast.Name | ast.Attribute) for each in keywords):
                    yield "splat of a name"
            case ast.NamedExpr():
                yield "walrus"
            case ast.FunctionDef(lineno=first, end_lineno=int(last)) if last - first >= LONGEST:
                yield "long function"
            case ast.Attribute(attr="_getframe"):
                yield "stack frame"


def test_kinds_of_the_package_stay_few():
    counts: Counter[str] = Counter()
    num_lines = 0
    for path in PACKAGE.rglob("*.py"):
        if SCRIPTS.isdisjoint(path.parts):
            source = path.read_text(encoding="utf-8")
            num_lines += source.count("\n")
            counts.update(kinds_of(ast.parse(source)))
    shares = {kind: 1000 * counts[kind] / num_lines for kind in MOST}
    assert {kind: share for kind, share in shares.items() if share > MOST[kind]} == {}
