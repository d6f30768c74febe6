"""Fixtures and settings of all tests."""

import contextlib
import ctypes
import functools
import gc
import importlib.util
import itertools
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Compiled programs are kept between tests, workers and runs of the suite: compiling is much of its time. A test's own
# processes inherit this. Set before anything imports JAX.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "programs"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")

# Each of two workers has one core: threads of BLAS would spin while they wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A test says itself how wide its terminal is: workers may have another width from whoever started them.
os.environ.pop("COLUMNS", None)

# Tracing makes objects by the million that last, which Python would look through again and again.
gc.set_threshold(100_000, 20, 20)

# For a CPU, XLA compiles in a fraction of the time without its newer way to emit fused loops, and with LLVM's passes
# left out: most programs here run for a moment. Where runs are long or last bits count, `compiled_to_run` has LLVM's
# first level for the engine's; where what users' programs do is asked, `compiled_for_users` brings everything back.
QUICKLY = (
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_backend_optimization_level=0",
    "--xla_cpu_parallel_codegen_split_count=1",
)
TO_RUN = {"xla_backend_optimization_level": 1}
FOR_USERS = {
    "xla_cpu_use_fusion_emitters": True,
    "xla_cpu_parallel_codegen_split_count": 32,
}


PEERS = sum(0.4e9 for name in ("torch", "numba") if importlib.util.find_spec(name))  # that benchmarks are run against
MOST_MEMORY, MUCH_MEMORY = 2e9 + PEERS, 0.9e9  # bytes that a process may hold, and that make it free some
WORTHWHILE = 0.2e9  # bytes that must have come since: after it as much is traced anew as a dozen tests take
STATM = Path("/proc/self/statm")
kept = 0  # bytes that stayed when some were freed last

# Each thread that compiles has an arena of its own, up to eight a core, of which little is given back.
M_ARENA_MAX = -8
if STATM.exists():
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def pytest_collection_finish() -> None:
    """Freeze objects of imported modules for the garbage collector."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Free what was compiled once it is much: programs that are needed again are read from disk."""
    peaks.add(item.nodeid)
    if "jax" in sys.modules and STATM.exists() and held() > MUCH_MEMORY:
        free(WORTHWHILE)


class Peaks:
    """The most memory that this process or one of its children has held, and the test in which it did."""

    def __init__(self) -> None:
        self.most = 0.0
        self.test = ""

    def add(self, test: str) -> None:
        """Note a test after which the most memory has risen by a tenth."""
        most = spent()[1]
        if most > 1.1 * self.most:
            self.most = most
            self.test = test


peaks = Peaks()


def free(worthwhile: float) -> None:
    """Free what was compiled, where at least so many bytes have come since."""
    global kept
    if held() <= kept + worthwhile:
        return
    sys.modules["jax"].clear_caches()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    kept = held()


@pytest.fixture
def much_room() -> None:
    """For tests whose programs are large."""
    if STATM.exists():
        free(WORTHWHILE / 4)


def held() -> int:
    """Bytes of memory that this process holds."""
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


def spent() -> tuple[float, float]:
    """Processor time in seconds of this process and those that it has waited for, and the most bytes that one held."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    unit = 1 if sys.platform == "darwin" else 1024
    return sum(each.ru_utime + each.ru_stime for each in used), unit * max(each.ru_maxrss for each in used)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker of xdist has noted."""
    noted = getattr(node, "workeroutput", {}).get("peak", (0.0, ""))
    peaks.most, peaks.test = max((peaks.most, peaks.test), tuple(noted))


@pytest.hookimpl(trylast=True)  # when the workers of xdist have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak"] = (peaks.most, peaks.test)
    if spent()[1] > MOST_MEMORY and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seconds, most = spent()
    said = f"processor time {seconds / 60:.1f} min, most memory of a process {most / 1e9:.2f} GB in {peaks.test}"
    terminalreporter.write_line(said, yellow=most > MOST_MEMORY)
    if most > MOST_MEMORY:
        terminalreporter.write_line(f"FAILED: a process held more than {MOST_MEMORY / 1e9} GB", red=True)


def compile_quickly() -> None:
    """Ask XLA for it, here and in the tests' own processes, unless this XLA ends at a flag that it does not know."""
    flags = " ".join([os.environ.get("XLA_FLAGS", ""), *QUICKLY]).strip()
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    tried = subprocess.run([sys.executable, "-c", "import jax; jax.devices()"], env=environment, capture_output=True)
    if tried.returncode == 0:
        os.environ["XLA_FLAGS"] = flags


def is_quick() -> bool:
    return set(QUICKLY) <= set(os.environ.get("XLA_FLAGS", "").split())


if not is_quick():  # else another of pytest's processes has asked
    compile_quickly()


def fresh_programs() -> dict[str, Callable[..., Any]]:
    """The engine's makers of programs, by name, which have made none so far."""
    from moe_theory.core import engine

    return {name: functools.cache(getattr(engine, name).__wrapped__) for name in ("_program", "_start_program")}


# One set for all modules that ask for it: what they have compiled is kept.
programs_to_run = functools.cache(fresh_programs)


@pytest.fixture(scope="module")
def compiled_to_run() -> Iterator[None]:
    """The engine's programs by LLVM's first level: ten times as fast as without, at twice the time to compile."""
    with pytest.MonkeyPatch.context() as patch:
        set_options(patch, TO_RUN, programs_to_run())
        yield


@pytest.fixture
def compiled_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's programs as those get them who set no flags of XLA."""
    from moe_theory.core import engine

    set_options(monkeypatch, FOR_USERS | engine._FURTHER | engine._BY_XLA, fresh_programs())


@pytest.fixture
def restore() -> Iterator[Callable[..., None]]:
    """Return a function of dictionaries, which are after the test as they are when it is called."""
    saved: list[tuple[dict[str, Any], dict[str, Any]]] = []
    yield lambda *tables: saved.extend((table, dict(table)) for table in tables)
    for table, entries in saved:
        table.clear()
        table.update(entries)


@pytest.fixture
def forgotten(restore: Callable[..., None]) -> None:
    """Undo a test's registrations."""
    from moe_theory.verification import claim, registry, statement

    registry.all_claims()  # imports the papers' claims, which would otherwise be gone with the test's
    restore(claim._REGISTERED, statement._DECLARED)


@pytest.fixture
def within_folder(tmp_path: Path) -> Iterator[None]:
    """Run a test in an empty folder."""
    with contextlib.chdir(tmp_path):
        yield


@pytest.fixture
def on_path(tmp_path: Path) -> Iterator[None]:
    """Let a test import modules from its folder."""
    sys.path.insert(0, str(tmp_path))
    importlib.invalidate_caches()
    yield
    sys.path.remove(str(tmp_path))


def set_options(patch: pytest.MonkeyPatch, further: dict[str, Any], programs: dict[str, Callable[..., Any]]) -> None:
    from moe_theory.core import engine

    options_for = engine.cpu_options
    if options_for() is not None and is_quick():
        patch.setattr(engine, "cpu_options", lambda is_large=False: options_for(is_large) | further)
    for name, maker in programs.items():
        patch.setattr(engine, name, maker)


@pytest.fixture(scope="session")
def keeps_its_words() -> Callable[[Any, Any], None]:
    """Asserts that a figure drawn from its data, a column wide, keeps its words whole and apart."""

    def check(spec: Any, data: Any) -> None:
        from moe_theory.plot import layout, style

        width = 3.25  # inches of a column
        with style.our_style(style.font_sizes(width)):
            figure = layout.drawn(spec, data, width)
            figure.draw_without_rendering()
            box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
            over = [pair for axes in figure.axes if axes.axison for pair in laid_over(figure, axes)]
        assert wide == width
        assert min(box.x0, box.y0, wide - box.x1, high - box.y1) > -0.005, spec.name
        assert not over, (spec.name, over)

    return check


def laid_over(figure: Any, axes: Any) -> list[tuple[str, str]]:
    """Titles, labels of axes and numbers beside them that lie over one another, and those that a legend covers."""
    titles = [axes.title, axes._left_title, axes._right_title, axes.xaxis.label, axes.yaxis.label]
    numbers = []
    for which, axis in enumerate((axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        numbers.append([each for each in axis.get_majorticklabels() if low <= each.get_position()[which] <= high])
    pairs = [(title, other) for i, title in enumerate(titles) for other in titles[i + 1 :]]
    pairs += [pair for labels in numbers for pair in itertools.pairwise(labels)]
    pairs += [(title, other) for title in titles for labels in numbers for other in labels]
    boxes = {id(text): text.get_window_extent().padded(-1) for pair in pairs for text in pair}
    shown = [pair for pair in pairs if all(text.get_text() for text in pair)]
    words = [(a.get_text(), b.get_text()) for a, b in shown if boxes[id(a)].overlaps(boxes[id(b)])]
    covers = [legend.get_window_extent().padded(-1) for legend in figure.legends]
    covered = [title.get_text() for title in titles if title.get_text() and any(map(boxes[id(title)].overlaps, covers))]
    return words + [(title, "legend") for title in covered]
