"""Small edits of one expression: what each file's mutants are."""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
PAIRS = "min max|minimum maximum|argmin argmax|any all|floor ceil|sum max|lower upper|sin cos|zeros ones|exp expm1"
NAMES = dict(pair.split() for pair in PAIRS.split("|"))
NAMES |= {second: first for first, second in NAMES.items()}  # of the two partners of "max", "sum" stays
# Arguments that decide no number: how much is kept or checked, and what is only printed.
SILENT = {"strict", "maxsize", "stacklevel", "why", "timeout", "frozen", "kw_only", "precision", "inline"}


class Mutant(NamedTuple):
    """One edit. All but `kind` and `line` identify it, also when lines move or the function moves to another file."""

    file: str
    function: str  # its qualified name, empty at the top of a module
    before: str  # the statement, or the header of a compound one
    after: str
    occurrence: int  # among edits of the file that share function, before and after
    kind: str
    line: int

    @property
    def words(self) -> tuple[str, str, str, int]:
        """The identity without the file."""
        return self.function, self.before, self.after, self.occurrence


class Edit(NamedTuple):
    """A mutant and the bytes of its file that it replaces."""

    mutant: Mutant
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        """Return the source of the file with the edit."""
        old = source.encode()
        return (old[: self.start] + self.text.encode() + old[self.end :]).decode()


def is_text(node: ast.AST) -> bool:
    """Whether a side of an operator is text or a type's None."""
    if isinstance(node, ast.Constant):
        return node.value is None or isinstance(node.value, str)
    return isinstance(node, ast.JoinedStr)


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Return the kinds of edits of one expression, and what it becomes by each."""
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            yield "comparison", replaced(node, ops=[COMPARISONS[type(op)](), *node.ops[1:]])
        case ast.BinOp() if type(node.op) in OPERATORS and not (is_text(node.left) or is_text(node.right)):
            yield "operator", replaced(node, op=OPERATORS[type(node.op)]())
            yield "term", node.left
            if isinstance(node.op, ast.Add | ast.Mult):
                yield "term", node.right
        case ast.BoolOp():
            yield "operator", replaced(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
            yield "term", node.values[0]
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()) if not isinstance(node.operand, ast.Constant):
            yield "not", node.operand
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int() as number):
            yield "constant", ast.Constant(number + 1)
        case ast.Constant(value=float() as number) if number:
            yield "constant", ast.Constant(1.5 * number)
        case ast.Subscript(slice=ast.Constant(value=int() as index)):
            yield "index", replaced(node, slice=ast.Constant(index + 1))
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))):
            yield "index", replaced(node, slice=ast.Constant(0))
        case ast.Slice() if node.lower or node.upper:
            side = "upper" if node.upper else "lower"
            yield "bound", replaced(node, **{side: ast.BinOp(getattr(node, side), ast.Add(), ast.Constant(1))})
        case ast.IfExp():
            yield "arguments", replaced(node, body=node.orelse, orelse=node.body)
        case ast.Call():
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in {"range", "arange"}:
                yield (
                    "bound",
                    replaced(node, args=[*node.args[:-1], ast.BinOp(node.args[-1], ast.Sub(), ast.Constant(1))]),
                )
            if name in NAMES:
                other = copy.copy(node.func)
                setattr(other, "attr" if isinstance(other, ast.Attribute) else "id", NAMES[name])
                yield "function", replaced(node, func=other)
            plain = not any(isinstance(value, ast.Starred | ast.GeneratorExp) for value in node.args)
            if (
                len(node.args) > 1
                and plain
                and name not in {"isinstance", "getattr", "min", "max", "minimum", "maximum"}
            ):
                yield "arguments", replaced(node, args=[*node.args[:-2], node.args[-1], node.args[-2]])


def replaced(node: ast.AST, **fields: Any) -> Any:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


class Finder(ast.NodeVisitor):
    """All edits of one file."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.lines = source.encode().splitlines(keepends=True)
        self.edits: list[Edit] = []
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.function: list[str] = []
        self.unit: ast.AST = ast.Pass()  # the statement, or its header, in whose words an edit is told
        self.visit(ast.parse(source))

    def generic_visit(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "format_spec", "bases"}:
                continue
            children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
            for index, child in children:
                if not isinstance(child, ast.AST):
                    continue
                if isinstance(child, ast.expr) and isinstance(node, ast.stmt):
                    self.unit = child if hasattr(node, "body") else node
                for kind, other in variants(child):
                    self.add(node, name, index, child, kind, other)
                self.visit(child)

    def add(self, parent: ast.AST, name: str, index: int | None, node: Any, kind: str, other: ast.AST) -> None:
        """Add the edit that puts `other` in the place of `node`, if the statement reads otherwise then."""
        before = ast.unparse(self.unit)
        after = ast.unparse(other) if self.unit is node else self.reworded(parent, name, index, node, other)
        if before == after:
            return
        function = ".".join(self.function)
        occurrence = self.counts[function, before, after]
        self.counts[function, before, after] += 1
        mutant = Mutant(self.file, function, before, after, occurrence, kind, node.lineno)
        start = self.offset(node.lineno, node.col_offset)
        end = self.offset(node.end_lineno, node.end_col_offset)
        text = ast.unparse(other)
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp | ast.IfExp):
            text = f"({text})"
        self.edits.append(Edit(mutant, start, end, text))

    def reworded(self, parent: ast.AST, name: str, index: int | None, node: ast.AST, other: ast.AST) -> str:
        """Return the statement with the edit in it."""

        def put(new: ast.AST) -> None:
            if index is None:
                setattr(parent, name, new)
            else:
                getattr(parent, name)[index] = new

        put(other)
        after = ast.unparse(self.unit)
        put(node)
        return after

    def offset(self, line: int, column: int) -> int:
        return sum(map(len, self.lines[: line - 1])) + column

    def visit_FunctionDef(self, node: Any) -> None:
        self.function.append(node.name)
        if not node.name.startswith("__") or node.name == "__post_init__":
            self.generic_visit(node)
        self.function.pop()

    visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in SILENT:
            self.generic_visit(node)

    def silent(self, node: ast.AST) -> None:
        """Messages, text, and what only names types."""

    visit_Raise = visit_Assert = visit_JoinedStr = visit_Import = visit_ImportFrom = visit_TypeAlias = silent  # noqa: N815

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if (
            ast.unparse(node.value).split(".")[-1]
            not in "Float Int Bool Array Key Annotated Callable dict list tuple".split()
        ):
            self.generic_visit(node)
