"""What decides kept numbers is told by code and values: catches an edit that goes unnoticed, and a text that counts."""

import contextlib
import importlib
import os
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

from moe_theory.core.errors import InvalidRunError
from moe_theory.core.papers import all_papers
from moe_theory.runs import fingerprint
from moe_theory.runs.fingerprint import Digests, code_digest
from moe_theory.verify import registry

MODULE = '''
"""A module."""

import dataclasses
import enum
import functools
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import far

TABLE = {"a": [1.0, 2.0], "b": np.arange(3)}
KINDS = {"round", "square"}
SCALE = 0.5


class Leaf:
    pass


def taken_apart(leaf):
    return (leaf, 53), None


jax.tree_util.register_pytree_node(Leaf, taken_apart, lambda _, parts: parts[0])


def message(name):
    return f"{name} cannot be"


def unreached(x):
    raise ValueError(message(x))


class Base:
    offset = 1

    def shifted(self, x):
        return x + self.offset


class Model(Base):
    """A model."""

    def __init__(self, rate):
        self.rate = rate

    @property
    def doubled(self):
        return 2 * self.rate


@dataclasses.dataclass(frozen=True)
class Size:
    height: Annotated[int, "positive"] = 3
    width: int = 4


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Pair(NamedTuple):
    make: object
    times: int = 2


def power(exponent):
    return lambda x: x**exponent


def third(x):
    return x * 7


def second(x):
    return third(x)


def first(x):
    return second(x)


def wrapped(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments) * 11

    return inner


@wrapped
def decorated(x):
    return x + 13


@jax.jit
def compiled(x):
    return jnp.sin(x) + 17


@functools.cache
def cached(x):
    return x + 19


def scaled(by, x):
    return by * x


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


PARTIAL = functools.partial(scaled, 23)
PAIR = Pair(lambda x: x + 29)
CUBE = power(3)
MODEL = Model(0.75)


def root(x: float, function=third, *, least=31) -> float:
    """What is asked of."""
    from near import helper

    # A comment.
    total = SCALE * x + len(KINDS)

    def added(y: int) -> float:
        "Inside."
        return total + y + far.nested.value(y)

    class Local:
        """Inside too."""

        places = 37

    found = [first(each) for each in TABLE["a"]] + [Model(x).shifted(Local.places), Model(x).doubled]
    found += [decorated(x), compiled(x), cached(x), PARTIAL(x), PAIR.make(x), CUBE(x), helper(x), Size().height]
    try:
        return sum(found) * MODEL.rate + added(x) + function(least) + Color.RED.value.count("e") + even(4)
    except ZeroDivisionError:
        return -1.0
'''
NEAR = "def helper(x):\n    return x + deep(x)\n\n\ndef deep(x):\n    return x + 41\n\n\ndef other(x):\n    return x\n"
FAR = "import nested\n\n\ndef unused(x):\n    return x\n"
NESTED = "def value(x):\n    return x + 43\n\n\ndef another(x):\n    return x\n"

SAME = {
    "a docstring": ('"""What is asked of."""', '"""Something else altogether."""'),
    "a docstring that goes": ('    """What is asked of."""\n', ""),
    "a docstring inside": ('"Inside."', '"Within."'),
    "a docstring of a class": ('"""A model."""', '"""Another model.\n\n    Of two lines."""'),
    "a docstring of a class inside": ('"""Inside too."""', '"""Within."""'),
    "a docstring of the module": ('"""A module."""', ""),
    "a comment": ("# A comment.", "# Another one.\n    # And one more."),
    "blank lines": ("SCALE = 0.5", "\n\n\nSCALE = 0.5"),
    "a message that is not reached": ("cannot be", "must not be"),
    "an annotation": ("x: float, function=third", "x: int, function: object = third"),
    "a hint of a field": ("width: int", "width: float"),
    "what is not reached": ("raise ValueError", "raise TypeError"),
    "a neighbour's function": ("return x\n", "return -x\n", "near"),
    "a neighbour's function, through modules": ("return x\n", "return -x\n", "nested"),
}
OTHER = {
    "a constant": ("return -1.0", "return -2.0"),
    "a constant's type": ("return -1.0", "return -1"),
    "an operator": ("rate + added", "rate - added"),
    "a helper three calls away": ("x * 7", "x * 8"),
    "a default": ("function=third", "function=second"),
    "a keyword's default": ("least=31", "least=32"),
    "a closure": ("power(3)", "power(4)"),
    "a function in a closure": ("return x + 13", "return x + 14"),
    "a decorator": ("* 11", "* 12"),
    "a method": ("x + self.offset", "x - self.offset"),
    "a class attribute": ("offset = 1", "offset = 2"),
    "a base class": ("class Model(Base)", "class Model"),
    "a property": ("2 * self.rate", "3 * self.rate"),
    "how an instance is made": ("self.rate = rate", "self.rate = -rate"),
    "a default of a dataclass": ("= 3\n", "= 5\n"),
    "a mark of a field": ('"positive"', '"negative"'),
    "a default of a named tuple": ("times: int = 2", "times: int = 3"),
    "a function in a named tuple": ("x + 29", "x + 30"),
    "a member's value": ('"red"', '"rede"'),
    "a global number": ("SCALE = 0.5", "SCALE = 0.25"),
    "a global table": ("[1.0, 2.0]", "[1.0, 3.0]"),
    "an array in a table": ("np.arange(3)", "np.arange(3.0)"),
    "an instance": ("Model(0.75)", "Model(0.5)"),
    "a set": ('{"round", "square"}', '{"round", "oval"}'),
    "a compiled function": ("jnp.sin(x) + 17", "jnp.cos(x) + 17"),
    "how a function is compiled": ("@jax.jit", "@functools.partial(jax.jit, static_argnums=0)"),
    "a cached function": ("x + 19", "x + 20"),
    "an argument of a partial": ("scaled, 23", "scaled, 24"),
    "a function of a partial": ("by * x", "by + x"),
    "a class inside": ("places = 37", "places = 38"),
    "a function inside": ("total + y", "total - y"),
    "an import inside": ("x + 41", "x + 42", "near"),
    "a module's module": ("x + 43", "x + 44", "nested"),
    "a cycle": ("return n != 0", "return n > 0"),
    "what JAX is given": ("leaf, 53", "leaf, 54"),
    "what is given in place": ("parts[0]", "parts[1]"),
    "what is caught": ("ZeroDivisionError", "OverflowError"),
}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # its files of one second look alike

    def of(*edit):
        """The digest of `root` after an edit of (old, new, module)."""
        texts = {"own": MODULE, "near": NEAR, "far": FAR, "nested": NESTED}
        if edit:
            old, new, name = (*edit, "own")[:3]
            assert old in texts[name]
            texts[name] = texts[name].replace(old, new, 1)
        for name in texts:
            sys.modules.pop(name, None)
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        own = importlib.import_module("own")
        found = code_digest(own.root)
        vars(own.PARTIAL)
        with contextlib.suppress(AttributeError):  # of what an edit takes away
            own.root(1.0)
        assert code_digest(own.root) == found  # use changes nothing
        return found

    yield of
    for name in ("own", "near", "far", "nested"):
        sys.modules.pop(name, None)


def test_what_people_read_decides_nothing(digest):
    before = digest()
    assert {what: digest(*edit) for what, edit in SAME.items()} == dict.fromkeys(SAME, before)


def test_every_edit_of_what_can_be_reached_is_noticed(digest):
    edited = {what: digest(*edit) for what, edit in OTHER.items()}
    assert len({digest(), *edited.values()}) == 1 + len(OTHER), [what for what in edited if edited[what] == digest()]


def test_processes_agree_whatever_they_import_first(digest, tmp_path):
    expected = digest()
    child = "from moe_theory.runs.fingerprint import code_digest; import near, own; print(code_digest(own.root))"
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", child], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_values_count_by_what_they_are():
    """Each is told from all others, and the same when it is made again."""

    def made():
        shared = [1]
        around = []
        around.append(around)
        return [
            0, False, 0.0, -0.0, float("nan"), "0", b"0", None, (), [], {}, set(), (0,), [0], [[1], [1]], [shared, [2]],
            {"a": 1, "b": 2}, {"b": 2, "a": 1}, {1: {2}}, frozenset({3, "x"}), around, [around],
            np.float32(0), np.zeros(1), np.zeros(1, np.float32), np.zeros((1, 1)), np.array([None]), np.dtype("f4"),
            jax.numpy.zeros(1), jax.numpy.asarray(0.0), jax.numpy.float32(0), jax.random.key(0), jax.random.key(1),
            len, np.sin, jax.numpy.sin, jax.nn.relu, threading.Lock, int, list[int], int | str, range(3), slice(1),
            "x".join, [].append, [1].append, np.random.default_rng(3), complex(0), Ellipsis,
        ]  # fmt: skip

    digests = [code_digest(each) for each in made()]
    assert len(set(digests)) == len(digests)
    assert digests == [code_digest(each) for each in made()]


def test_a_value_that_cannot_be_told_is_refused(tmp_path):
    with (tmp_path / "file").open("w") as file:
        for value in (file, (each for each in "ab"), [{"a": file}]):
            with pytest.raises(InvalidRunError, match="cannot be hashed"):
                code_digest(lambda value=value: value)


def test_an_object_is_read_once_and_may_say_what_counts_of_it():
    class Told:
        def __init__(self, number, text):
            self.number, self.text = number, text

        def __fingerprint__(self):
            return self.number

    digests = Digests()
    value = [1]
    assert digests.of(Told(1, "one")) == digests.of(Told(1, "two")) != digests.of(Told(2, "one"))
    before = digests.of(value)
    value.append(2)
    assert digests.of(value) == before != Digests().of(value)


def test_this_package_s_statements_give_libraries_nothing_that_decides_a_number():
    registry.all_claims()
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "moe_theory"]
    given = {
        module.__name__
        for module in modules
        for text in fingerprint._given_away(module)
        if isinstance(text, str) and "register_at_fork" not in text
    }
    importing = {f"{paper.package}.statements" for paper in all_papers().values()}
    assert given - importing <= {"moe_theory.verify"}  # which is made callable
