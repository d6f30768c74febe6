"""Keys of results, and the fingerprint: catches an edit of code or a value that goes unnoticed, a text that counts."""

import functools
import importlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import deep
from moe_theory.core.errors import InvalidValueError
from moe_theory.runs.key import Digests, code_digest
from moe_theory.runs.provenance import fingerprint

PACKAGE = Path(mt.__file__).parent
# A user's function, and a file of the package that decides its numbers.
USES = {
    "lazy name": ("from moe_theory.runs import Cell\ndef root(): return Cell", "runs/cells.py"),
    "lazy attribute": ("import moe_theory as mt\ndef root(): return mt.verify", "verification/session.py"),
    "paper": ("from moe_theory import continual\ndef root(): return continual.system", "continual/algorithm.py"),
}
CHILD = "import sys, tests.runs.test_key as these; these.report(*sys.argv[1:])"


def modules_run(case):
    """Return the files of the package whose functions a tiny simulation calls."""
    ran = set()
    system = case.build()
    sys.setprofile(lambda frame, event, argument: ran.add(frame.f_code.co_filename))
    try:
        mt.simulate(system, mt.root_key(0), case.params, 2)
    finally:
        sys.setprofile(None)
    return sorted(str(Path(file).relative_to(PACKAGE)) for file in ran if file.startswith(str(PACKAGE)))


def edit(file, text):
    """Write a file as if it had been so when it was imported."""
    times = file.stat()
    file.write_text(text)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def keys(roots):
    """Return the key of each root, with files as they are now."""
    digests = Digests()
    return {name: digests.of(*root) for name, root in roots.items()}


def changed_by(files, roots):
    """Return by file the names of the roots whose key another constant in it changes."""
    before = keys(roots)
    changed = {}
    for file in files:
        text = (PACKAGE / file).read_text()
        edit(PACKAGE / file, f"{text}\nADDED = 1\n")
        changed[file] = [name for name, key in keys(roots).items() if key != before[name]]
        edit(PACKAGE / file, text)
    return changed


def is_refused(roots):
    try:
        keys(roots)
    except InvalidValueError:
        return True
    return False


def report(folder, *names):
    """Print which edits of this process's copy of the package change which keys: of the systems of these names."""
    from tests.contract.cases import CASES

    cases = [case for case in CASES if not names or case.name in names]
    sys.path.insert(0, folder)
    for number, (text, _) in enumerate(USES.values()):
        (Path(folder) / f"user_{number}.py").write_text(text)
    users = {name: (importlib.import_module(f"user_{number}").root,) for number, name in enumerate(USES)}
    systems = {case.name: (case.build(), mt.simulate) for case in cases}
    ran = {case.name: modules_run(case) for case in cases}
    found = {
        "ran": ran,
        "systems": changed_by(set(itertools.chain(*ran.values())), systems),
        "users": changed_by({file for _, file in USES.values()}, users),
    }
    (PACKAGE / "core/engine.py").touch()
    found["refused"] = is_refused(systems)
    json.dump(found, sys.stdout)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """What another process reports of a copy of the package, of one paper's system."""
    return reported_by_another(tmp_path_factory.mktemp("copy"), "continual")


def reported_by_another(folder, *names):
    shutil.copytree(PACKAGE, folder / "moe_theory", ignore=shutil.ignore_patterns("__pycache__"))
    roots = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    environment = os.environ | {"PYTHONPATH": roots, "PYTHONDONTWRITEBYTECODE": "1"}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), *names], env=environment, capture_output=True, text=True, cwd=folder
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


def not_in_keys(reported):
    """Modules that a system runs, and that no key follows, except the package's own, which only loads names."""
    ran = [(name, file) for name, files in reported["ran"].items() for file in files if file != "__init__.py"]
    return [(name, file) for name, file in ran if name not in reported["systems"][file]]


def test_every_module_that_a_system_runs_is_in_its_key(reported):
    """Would catch an import that the walk does not see: a number of other code would be served."""
    assert not_in_keys(reported) == []


def test_a_file_that_changed_after_it_was_imported_is_refused(reported):
    """Would catch numbers of old code that get the key of the new one."""
    assert reported["refused"]


def test_the_names_of_packages_that_are_read_are_followed(reported):
    """Would catch a lazy or re-exported name that is not followed to its module."""
    for use, (_, reached) in USES.items():
        assert use in reported["users"][reached]


MAIN = '''
"""Main."""

import importlib

import lab.absolute
from . import relative
from .outer import inner


def root(x):
    from lab.inside import VALUE

    return VALUE, importlib.import_module("lab.named")
'''


@pytest.fixture
def key(tmp_path, monkeypatch, on_path):
    """Return the key of `lab.main.root`, where files of the package `lab` may be edited."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files of one second look alike
    names = ("__init__", "absolute", "relative", "inside", "named", "outer/inner")
    files = {f"{name}.py": "VALUE = 1\n" for name in names} | {"outer/__init__.py": "", "main.py": MAIN}

    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def key_of(**texts):
        for name, text in (files | {f"{name}.py": text for name, text in texts.items()}).items():
            (tmp_path / "lab" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "lab" / name).write_text(text)
        forget()
        return code_digest(importlib.import_module("lab.main").root)

    yield key_of
    forget()


def test_an_imported_module_is_in_the_key(key):
    before = key()
    for name in ("__init__", "absolute", "relative", "inside", "named", "outer/inner"):
        assert key(**{name: "VALUE = 2\n"}) != before, name


def test_a_global_that_a_file_decides_is_in_the_key(key, tmp_path):
    """Would catch a number of data that have been replaced."""
    text = f"import pathlib\nDATA = pathlib.Path({str(tmp_path / 'data')!r}).read_text()\ndef root(): return DATA"
    keys = []
    for data in ("old", "new"):
        (tmp_path / "data").write_text(data)
        keys.append(key(main=text))
    assert keys[0] != keys[1]


def scaled(factor):
    return lambda x: x * factor


class Scale:
    """A scale."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    @functools.cached_property
    def square(self):
        return self.factor**2


def values():
    """Return values that differ from one another, and are made anew by each call."""
    return [
        0, 1, 1.0, True, False, 0.0, -0.0, float("nan"), "0", b"0", None, (), [], {}, set(), (0,), [0],
        {"a": 1, "b": 2}, {1: {2}}, frozenset({3, "x"}), complex(0), Ellipsis, range(3), slice(1),
        np.float32(0), np.zeros(1), np.zeros(1, np.float32), np.zeros((1, 1)), np.array([None]), np.dtype("f4"),
        jax.numpy.zeros(1), jax.numpy.asarray(0.0), jax.numpy.float32(0), jax.random.key(0), jax.random.key(1),
        len, np.sin, jax.numpy.sin, jax.nn.relu, int, list[int], int | str, "x".join, np.random.default_rng(3),
        scaled(2), scaled(3), scaled(2.0), lambda x: x + 1, lambda x: x + 2, functools.partial(scaled, 2),
        functools.partial(scaled, 3), Scale(2), Scale(3), Scale(2).__call__, Scale(3).__call__, Scale, scaled,
        jax.jit(scaled(2)), jax.jit(scaled(3)), jax.grad(scaled(2)), functools.cache(scaled(2)), threading.Lock,
        deep.Dims(2, 2, 2), deep.Dims(2, 2, 3), mt.Status.SUPPORTED, mt.Status.REFUTED, np, jax.numpy,
    ]  # fmt: skip


def test_values_that_differ_have_different_keys_and_those_made_anew_the_same():
    digests = Digests()
    keys = [digests.of(value) for value in values()]
    alike = [pair for pair in itertools.combinations(range(len(keys)), 2) if keys[pair[0]] == keys[pair[1]]]
    assert alike == []
    assert [digests.of(value) for value in values()] == keys


def test_what_is_kept_for_speed_is_not_in_the_key():
    used = Scale(2)
    assert used.square == 4
    assert code_digest(used) == code_digest(Scale(2))


def refused(value):
    """Why a value has no key."""
    with pytest.raises(InvalidValueError) as caught:
        code_digest(value)
    return str(caught.value)


def test_a_value_without_a_key_is_refused_by_its_type(tmp_path):
    around = []
    around.append(around)
    for value in (threading.Lock(), object(), (x for x in "ab"), around):
        assert type(value).__name__ in refused([value])
    with (tmp_path / "file").open("w") as file:
        assert "TextIOWrapper" in refused(lambda: file)


def notebook(text):
    """Return the function `root` of a notebook's cells."""
    namespace = {"__name__": "__main__"}
    exec(text, namespace)
    return namespace["root"]


CELLS = '''
import numpy as np
from moe_theory import continual
RATE = 1
TABLE = np.arange(3)

def helper(x):
    """Help."""
    return x + 1

class Model:
    """A model."""
    size = 5

def root(x):
    """Root."""
    import json
    class Local:
        """Inside."""
        depth = 7
    return [helper(x) * RATE for _ in TABLE] + [Model.size, continual.system, json.dumps(x), Local.depth]
'''


def test_what_a_notebook_s_function_names_is_in_its_key():
    before = code_digest(notebook(CELLS))
    for old, new in (
        ("RATE = 1", "RATE = 1.0"),
        ("arange(3)", "arange(4)"),
        ("x + 1", "x + 2"),
        ("size = 5", "size = 6"),
        ("depth = 7", "depth = 8"),
        ("continual.system", "continual.theory"),
        ("import json", "import math as json"),
    ):
        assert code_digest(notebook(CELLS.replace(old, new))) != before, new


def test_a_notebook_s_function_that_loads_by_name_is_refused():
    assert "eval" in refused(notebook("def root(text):\n    return eval(text)"))


def test_a_network_of_a_user_counts_by_its_code():
    """Would catch a network that is registered anew under its name, and gets the numbers of the old one."""
    keys = []
    for width in (2, 3):
        deep.register(deep.networks.mlp("wide", widths=(width,)))
        keys.append(code_digest(deep.Dims(2, 2, 2, network="wide")))
    del deep.networks.NETWORKS["wide"]
    assert keys[0] != keys[1]


def test_objects_may_say_what_counts_of_them():
    class Named:
        def __init__(self, number, text):
            self.number = number
            self.text = text

        def __fingerprint__(self):
            return self.number

    assert code_digest(Named(1, "one")) == code_digest(Named(1, "two"))


OPTIONS = {
    "jax_threefry_partitionable": False,
    "jax_default_matmul_precision": "highest",
    "jax_numpy_dtype_promotion": "strict",
    "jax_random_seed_offset": 5,
    "jax_default_prng_impl": "rbg",
    "jax_disable_jit": True,
    "jax_optimization_level": "O0",
}


def test_a_changed_option_is_a_changed_fingerprint_and_the_same_root_key():
    """Would catch kept samples that another configuration of JAX would not have given, and seeds that are shifted."""
    for name, value in OPTIONS.items():
        before, fingerprint_before = jax.config.values[name], fingerprint()
        key = jax.random.key_data(mt.root_key(3))
        jax.config.update(name, value)
        try:
            assert fingerprint() != fingerprint_before, name
            np.testing.assert_array_equal(jax.random.key_data(mt.root_key(3)), key, name)
        finally:
            jax.config.update(name, before)


def test_the_order_of_compiler_flags_counts(monkeypatch):
    """Would catch samples of one instruction set taken for those of another: of two flags the later one wins."""
    flags = [f"--xla_cpu_max_isa={name}" for name in ("AVX2", "SSE4_2")]
    known = []
    for given in (flags, flags[::-1]):
        monkeypatch.setenv("XLA_FLAGS", " ".join(["--xla_dump_to=/nowhere", *given]))
        known.append(fingerprint())
    assert known[0]["processor"] != known[1]["processor"]
    assert known[0]["configuration"] != known[1]["configuration"]
    assert "xla_dump" not in str(known)
