"""Mutants of the code that simulates and judges, and which the suite kills: `python -m benchmarks.mutants OUT.json`.

A mutant is one small edit of a copy of the tree: a comparison, an operator, a constant, an index, a bound off by one, a
`not` or a term dropped, arguments swapped, `min` for `max`. Docstrings, annotations and messages are left alone. Tests
run with `-x`, those nearest to the edit first, up to `--limit` seconds of processor time a mutant; OUT.json is written
after each mutant, and rerunning resumes. A mutant is known by file, function, the statement before and after, and its
occurrence, so that `--before EARLIER.json` finds the same ones in a tree whose lines have moved, tries first what
killed them there, and prints which live now that did not. Where neither its module nor the file of the test that killed
it has changed, it is taken as killed without a run.
"""

import argparse
import ast
import compileall
import copy
import gc
import hashlib
import inspect
import itertools
import json
import os
import random
import re
import resource
import runpy
import shutil
import signal
import sys
import tempfile
import time
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.main import pytest_runtestloop as loop

FORMULAS = "theory corrected algorithm system delays policies model rewards tree".split()
PICTURES = "moe_theory/plot/spec.py"  # judged by eye
FOLDERS = "contract golden statistical properties cli".split()  # of tests, after the nearest and the papers'
NOT_IN_PLACE = 71  # exit code of a fork
STARTED_IN = Path.cwd()
HANG = 30  # seconds of processor time beyond the limit after which one test hangs

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
PAIRS = "min max|minimum maximum|argmin argmax|any all|floor ceil|sum max|lower upper|sin cos|zeros ones|exp expm1"
NAMES = {a: b for pair in PAIRS.split("|") for a, b in (pair.split(), pair.split()[::-1])} | {"sum": "max"}
# What decides no number: how much is kept or checked, and what is only said.
SILENT = {"strict", "maxsize", "stacklevel", "why", "timeout", "frozen", "kw_only", "precision", "inline"}


def papers(tree: Path) -> list[str]:
    """Folders that have a paper's formulas."""
    return sorted(path.parent.name for path in tree.glob("moe_theory/*/theory.py"))


def modules(tree: Path) -> list[str]:
    """Files that are mutated."""
    named = [*tree.glob("moe_theory/core/*.py"), *tree.glob("moe_theory/verify/*.py")]
    named += [tree / "moe_theory" / paper / f"{name}.py" for paper in papers(tree) for name in FORMULAS]
    return sorted(file for path in named if path.is_file() and (file := str(path.relative_to(tree))) != PICTURES)


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Kinds of edits of one expression, and what it becomes."""
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            yield "comparison", _with(node, ops=[COMPARISONS[type(op)](), *node.ops[1:]])
        case ast.BinOp() if type(node.op) in OPERATORS and not any(
            isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str | None.__class__)
            for side in (node.left, node.right)
            if isinstance(side, ast.JoinedStr | ast.Constant)
        ):
            yield "operator", _with(node, op=OPERATORS[type(node.op)]())
            yield "term", node.left
            if isinstance(node.op, ast.Add | ast.Mult):
                yield "term", node.right
        case ast.BoolOp():
            yield "operator", _with(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
            yield "term", node.values[0]
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()) if not isinstance(node.operand, ast.Constant):
            yield "not", node.operand
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield "constant", ast.Constant(node.value + 1)
        case ast.Constant(value=float()) if node.value:
            yield "constant", ast.Constant(1.5 * node.value)
        case ast.Subscript(slice=ast.Constant(value=int()) as index):
            yield "index", _with(node, slice=ast.Constant(index.value + 1))
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))):
            yield "index", _with(node, slice=ast.Constant(0))
        case ast.Slice() if node.lower or node.upper:
            side = "upper" if node.upper else "lower"
            yield "bound", _with(node, **{side: ast.BinOp(getattr(node, side), ast.Add(), ast.Constant(1))})
        case ast.IfExp():
            yield "arguments", _with(node, body=node.orelse, orelse=node.body)
        case ast.Call():
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in {"range", "arange"}:
                yield "bound", _with(node, args=[*node.args[:-1], ast.BinOp(node.args[-1], ast.Sub(), ast.Constant(1))])
            if name in NAMES:
                other = copy.copy(node.func)
                setattr(other, "attr" if isinstance(other, ast.Attribute) else "id", NAMES[name])
                yield "function", _with(node, func=other)
            plain = not any(isinstance(value, ast.Starred | ast.GeneratorExp) for value in node.args)
            if (
                len(node.args) > 1
                and plain
                and name not in {"isinstance", "getattr", "min", "max", "minimum", "maximum"}
            ):
                yield "arguments", _with(node, args=[*node.args[:-2], node.args[-1], node.args[-2]])


def _with(node: ast.AST, **fields: Any) -> Any:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


class Candidates(ast.NodeVisitor):
    """All mutants of one file, each with the text that its source becomes."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.lines, self.found, self.seen = file, source.encode().splitlines(keepends=True), [], Counter()
        self.function: list[str] = []
        self.unit: ast.AST = ast.Pass()  # the statement, or its header, in whose words an edit is told
        self.visit(ast.parse(source))

    def generic_visit(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "format_spec", "bases"}:
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    if isinstance(child, ast.expr) and isinstance(node, ast.stmt):
                        self.unit = child if hasattr(node, "body") else node
                    self.offer(node, name, index, child)
                    self.visit(child)

    def offer(self, parent: ast.AST, name: str, index: int | None, node: ast.AST) -> None:
        for kind, other in variants(node):
            before = ast.unparse(self.unit)
            place = getattr(parent, name) if index is not None else parent
            put = (
                (lambda new, p=place, i=index: p.__setitem__(i, new))
                if index is not None
                else (lambda new, p=place, n=name: setattr(p, n, new))
            )
            if self.unit is node:
                after = ast.unparse(other)
            else:
                put(other)
                after = ast.unparse(self.unit)
                put(node)
            key = (".".join(self.function), before, after)
            if before != after:
                self.found.append(
                    {
                        "file": self.file,
                        "function": key[0],
                        "before": before,
                        "after": after,
                        "occurrence": self.seen[key],
                        "kind": kind,
                        "line": node.lineno,
                        "text": self.edited(node, ast.unparse(other)),
                    }
                )
                self.seen[key] += 1

    def edited(self, node: Any, text: str) -> str:
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp | ast.IfExp):
            text = f"({text})"
        lines = self.lines
        head = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
        tail = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
        return (head + text.encode() + tail).decode()

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


def key(mutant: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(mutant[name] for name in ("file", "function", "before", "after", "occurrence"))


def choose(tree: Path, number: int, seed: int) -> list[dict[str, Any]]:
    """At least `number` mutants, over files by their lines of code, and in a file over functions and kinds of edits."""
    generator = random.Random(seed)
    found = {file: Candidates(file, (tree / file).read_text()).found for file in modules(tree)}
    found = {file: mutants for file, mutants in found.items() if mutants}
    sizes = {file: len({mutant["line"] for mutant in mutants}) for file, mutants in found.items()}
    chosen = []
    for file, mutants in found.items():
        groups: dict[Any, list[Any]] = {}
        for mutant in mutants:
            groups.setdefault((mutant["kind"], mutant["function"]), []).append(mutant)
        for group in generator.sample(
            sorted(groups), min(len(groups), max(1, round(number * sizes[file] / sum(sizes.values()))))
        ):
            chosen.append(generator.choice(groups[group]))
    generator.shuffle(chosen)
    return chosen


def stages(tree: Path, file: str, seconds: dict[str, float], limit: float) -> list[list[str]]:
    """Test files in the order in which they are tried: what names the module, its folder, all others that may reach it;
    of each kind those first that take least. Those that take a quarter of the limit come after all others, and none
    that takes longer than the limit.
    """
    _, folder, name = Path(file).with_suffix("").parts
    tests = sorted(str(path.relative_to(tree)) for path in tree.glob("tests/*/test_*.py"))
    tests = sorted((test for test in tests if seconds.get(test, 5.0) < limit), key=lambda test: seconds.get(test, 5.0))
    near, named, same = [], [], []
    folders = [*papers(tree), *FOLDERS]
    import_of = re.compile(
        rf"moe_theory\.{folder}\.{name}\b|from moe_theory\.{folder} import [^\n]*\b{name}\b|{folder}\.{name}\."
    )
    users = [path for path in tree.glob("moe_theory/*/*.py") if import_of.search(path.read_text())]
    for test in tests:
        text, within = (tree / test).read_text(), f"tests/{folder}/" in test
        if within and name in Path(test).stem:
            near.append(test)
        elif import_of.search(text) and any(f"tests/{other}/" in test for other in {folder, *folders}):
            (near if within else named).append(test)
        elif any(f"tests/{user.parent.name}/" in test and user.stem in Path(test).stem for user in users):
            named.append(test)
        elif within:
            same.append(test)
    rest = [
        test for other in folders for test in tests if f"tests/{other}/" in test and test not in {*near, *named, *same}
    ]
    if folder in papers(tree):
        rest = [test for test in rest if not any(f"tests/{paper}/" in test for paper in papers(tree))]
        rest.sort(key=lambda test: folder not in Path(test).name)  # its parity with a reference loop
    first = [test for test in near if seconds.get(test, 5.0) < limit / 4]
    later = [test for test in [*near, *named, *same, *rest] if test not in first]
    later.sort(key=lambda test: seconds.get(test, 5.0) >= limit / 4)  # the dear ones last, or no other would be tried
    batches = [later[start : start + 6] for start in range(0, len(later), 6)]  # collecting all takes long
    return [stage for stage in (first, *batches) if stage]


class Watch:
    """In a process of tests: writes down what runs and what fails, and stops at the limit.

    With `texts` it is a server: once it has collected the tests, and imported all that they need, it forks for each
    text, puts the module's functions in place that this text defines, and runs the tests in the fork.
    """

    def __init__(self, log: Path, limit: float, file: Path, texts: list[str], only: str | None) -> None:
        self.log, self.limit, self.file, self.texts, self.only = log, limit, file, texts, only

    def write(self, **entry: Any) -> None:
        with self.log.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.only:
            items[:] = [item for item in items if item.nodeid == self.only]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write(failed=report.nodeid or "collection")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write(started=nodeid, at=time.process_time())

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.write(failed=report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.write(finished=nodeid, at=time.process_time())

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: Any) -> None:
        if time.process_time() > self.limit:
            item.session.shouldstop = "the limit"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if not self.texts:
            return None
        bridge = sys.modules.get("jax._src.xla_bridge")
        if bridge is not None and bridge._backends:  # its threads do not outlive a fork
            return True
        results, server_log = [], self.log
        for text in self.texts:

            def run(log: Path, text: str = text) -> int:
                self.log = log
                if not put_in_place(self.file, text):
                    return NOT_IN_PLACE
                try:
                    loop(session)
                except session.Interrupted:
                    return 2
                except session.Failed:
                    return 1
                return int(session.testsfailed > 0)

            results.append(in_a_fork(run, self.limit))
        self.log = server_log
        self.write(results=results)
        return True


def put_in_place(file: Path, text: str) -> bool:
    """Give all functions of this file the code that the text has for them; False where that makes no mutant."""

    def codes(code: types.CodeType) -> Iterator[tuple[tuple[str, int], types.CodeType]]:
        seen: Counter[str] = Counter()
        pending = [code]
        while pending:
            one = pending.pop(0)
            inner = [constant for constant in one.co_consts if isinstance(constant, types.CodeType)]
            pending += inner
            yield (one.co_qualname, seen[one.co_qualname]), one
            seen[one.co_qualname] += 1

    def executed_at_import(code: types.CodeType) -> list[Any]:
        names = [constant for constant in code.co_consts if not isinstance(constant, types.CodeType)]
        return [code.co_code, names, code.co_names]

    before = dict(codes(compile(file.read_text(), str(file), "exec")))
    after = dict(codes(compile(text, str(file), "exec")))
    if before.keys() != after.keys():
        return False
    at_import = [key for key in before if not before[key].co_flags & inspect.CO_OPTIMIZED]  # modules and classes
    if any(executed_at_import(before[key]) != executed_at_import(after[key]) for key in at_import):
        return False
    lines = {(code.co_qualname, code.co_firstlineno): key for key, code in before.items()}
    gc.unfreeze()  # what the suite has frozen is not listed
    functions = [thing for thing in gc.get_objects() if isinstance(thing, types.FunctionType)]
    for function in functions:
        code = function.__code__
        if code.co_filename == str(file) and (place := lines.get((code.co_qualname, code.co_firstlineno))):
            if len(code.co_freevars) != len(after[place].co_freevars):
                return False
            function.__code__ = after[place]
    return True


def in_a_fork(run: Callable[[Path], int], limit: float) -> tuple[str, str | None, float, dict[str, float]]:
    """Outcome, the test that failed or hung, seconds of processor time, and those of each test file.

    Outcomes: "killed", "hangs", "survived", "stopped" at the limit, or "not in place".
    """
    log = Path(tempfile.mkstemp(suffix=".log")[1])
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit + HANG), int(limit + HANG)))
        code = 70
        try:
            code = run(log)
        finally:
            os._exit(code)
    deadline = time.monotonic() + 10 * (limit + HANG)  # of wall time: the machine may be shared, or a test may sleep
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    entries = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
    log.unlink()
    took: dict[str, float] = {}
    for one, other in itertools.pairwise(entries):
        if "started" in one and "at" in other:
            file = one["started"].partition("::")[0]
            took[file] = took.get(file, 0.0) + other["at"] - one["at"]
    seconds = usage.ru_utime + usage.ru_stime
    failed = next((entry["failed"] for entry in entries if "failed" in entry), None)
    last = next((entry["started"] for entry in reversed(entries) if "started" in entry), "collection")
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    if failed:
        return "killed", failed, seconds, took
    if code == NOT_IN_PLACE:
        return "not in place", None, seconds, took
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGXCPU, signal.SIGKILL}:
        return "hangs", last, seconds, took
    if code in {0, 2, 5}:  # all passed, the limit, no test is left
        return "stopped" if code == 2 else "survived", None, seconds, took
    return "killed", last, seconds, took


def tested(tree: Path, files: list[str], watch: Watch) -> int:
    """pytest's exit code in this process, which sees nothing but the tree."""
    os.chdir(tree)
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in {"", str(STARTED_IN)})]
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]
    out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1), os.dup2(out, 2)
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files], plugins=[watch]))


def serve(tree: Path, files: list[str], file: str, texts: list[str], limit: float, only: str | None) -> list[Any]:
    """Results of `in_a_fork` for each text, by a server; [] where none can be."""
    answer = Path(tempfile.mkstemp(suffix=".answer")[1])
    child = os.fork()
    if child == 0:
        try:
            tested(tree, files, Watch(answer, limit, tree / file, texts, only))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    entries = [json.loads(line) for line in answer.read_text().splitlines() if line.endswith("}")]
    answer.unlink()
    return next((entry["results"] for entry in entries if "results" in entry), [])


def try_tests(
    tree: Path, source: Path, mutants: list[dict[str, Any]], texts: dict[Any, str], files: list[str], limit: float,
    times: dict[str, float], only: str | None = None,
) -> None:  # fmt: skip
    """Run these tests on each mutant of one file that is not settled, and write down in it what came out."""
    mutants = [mutant for mutant in mutants if "outcome" not in mutant and mutant["seconds"] < limit]
    if not mutants:
        return
    file = mutants[0]["file"]
    results = serve(tree, files, file, [texts[key(mutant)] for mutant in mutants], limit, only)
    for mutant, result in itertools.zip_longest(mutants, results):
        if result is None or result[0] == "not in place":
            (tree / file).write_text(texts[key(mutant)])
            result = in_a_fork(lambda log: tested(tree, files, Watch(log, limit, tree / file, [], only)), limit)
            shutil.copy2(source / file, tree / file)
        outcome, test, seconds, took = result
        times |= {name: max(spent, times.get(name, 0.0)) for name, spent in took.items()}
        mutant["seconds"] = round(mutant["seconds"] + seconds, 1)
        mutant["last"] = files[-1]
        if outcome in {"killed", "hangs"}:
            mutant |= {"outcome": outcome, "by": test, "code": code_of(source, mutant, test)}


def code_of(tree: Path, mutant: dict[str, Any], test: str | None) -> str | None:
    """Digest of the module and of the file of the test that killed its mutant; None if one of them is gone."""
    files = [tree / mutant["file"], tree / (test or "").partition("::")[0]]
    if not all(file.is_file() for file in files):
        return None
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def copied(tree: Path, folder: str) -> Path:
    """A copy of what tests need, with its bytecode."""
    skipped = shutil.ignore_patterns(".git", "__pycache__", "runs", ".venv", "site", ".pytest_cache")
    # `runs` is the folder of results at the top, and a package below.
    place = Path(
        shutil.copytree(
            tree, Path(folder) / "tree", ignore=lambda d, n: skipped(d, n) - ({"runs"} if d != str(tree) else set())
        )
    )
    compileall.compile_dir(place / "moe_theory", quiet=1)
    return place


def main() -> None:
    """Try the mutants and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tree", type=Path, default=Path.cwd())
    parser.add_argument("--before", type=Path, help="an earlier OUT.json: its mutants are tried again")
    parser.add_argument("--number", type=int, default=220)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60, help="seconds of processor time a mutant")
    parser.add_argument("--most", type=int, default=10**6, help="stop after that many")
    options = parser.parse_args()
    earlier = (
        {key(mutant): mutant for mutant in json.loads(options.before.read_text())["mutants"]} if options.before else {}
    )
    tree = options.tree.resolve()
    times: dict[str, float] = {}  # seconds by test file, as far as they were seen
    if options.out.exists():
        results, times = json.loads(options.out.read_text()).values()
    else:
        results = [dict(mutant) for mutant in earlier.values()] or choose(tree, options.number, options.seed)
        results = [{name: value for name, value in mutant.items() if name in _KEPT} for mutant in results]
    import_libraries()
    with tempfile.TemporaryDirectory() as folder:
        place = copied(tree, folder)
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(tree / ".pytest_cache" / "programs"))
        runpy.run_path(str(place / "tests" / "conftest.py"))  # its flags for XLA, once for all
        left = [mutant for mutant in results if "outcome" not in mutant][: options.most]
        for file in dict.fromkeys(mutant["file"] for mutant in left):
            mutants = [mutant for mutant in left if mutant["file"] == file]
            try_module(place, tree, mutants, earlier, options.limit, times)
            options.out.write_text(json.dumps({"mutants": results, "seconds": times}, indent=1) + "\n")
            for mutant in mutants:
                print(*(mutant.get(name) for name in ("file", "line", "kind", "outcome", "by", "seconds")), flush=True)
    print(Counter(mutant.get("outcome", "left") for mutant in results))
    for mutant in results:
        if mutant.get("outcome") in {"survived", "hangs"} and earlier.get(key(mutant), {}).get("outcome") == "killed":
            print("lives now:", *key(mutant)[:4], "| was killed by", earlier[key(mutant)]["by"])


def try_module(
    place: Path,
    source: Path,
    mutants: list[dict[str, Any]],
    earlier: dict[Any, Any],
    limit: float,
    times: dict[str, float],
) -> None:
    """All outcomes of the mutants of one file."""
    file, texts = mutants[0]["file"], {}
    if (source / file).exists():
        texts = {key(other): other["text"] for other in Candidates(file, (source / file).read_text()).found}
    for mutant in mutants:
        before = earlier.get(key(mutant), {})
        mutant["seconds"] = 0.0
        if key(mutant) not in texts:
            mutant["outcome"] = "gone"
        elif before.get("outcome") == "killed":
            if before["code"] and before["code"] == code_of(source, mutant, before["by"]):
                mutant |= {name: before[name] for name in ("outcome", "by", "code")}
            elif (source / before["by"].partition("::")[0]).exists():
                files = [before["by"].partition("::")[0]]
                try_tests(place, source, [mutant], texts, files, limit, times, before["by"])
    for files in stages(source, file, times, limit):
        try_tests(place, source, mutants, texts, files, limit, times)
    for mutant in mutants:
        mutant.setdefault("outcome", "survived")


_KEPT = {"file", "function", "before", "after", "occurrence", "kind", "line"}


def import_libraries() -> None:
    """What every test process needs, once: the processes are forks of this one."""
    warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
    sys.dont_write_bytecode = True
    for name in "jax.numpy optax scipy.stats matplotlib.pyplot xarray chex pydantic".split():
        __import__(name)


if __name__ == "__main__":
    main()
