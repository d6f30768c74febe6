"""Dask's workers: catches chunks that a loss changes or drops, errors taken for losses, and workers left behind."""

import asyncio
import contextlib
import functools
import gc
import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest
from packed import entries

from moe_theory.core.errors import ExecutorLostError, InvalidRunError
from moe_theory.runs import Progress, compilation
from moe_theory.sweep import plan as planning
from moe_theory.sweep import runner
from moe_theory.sweep.dask import dask_pool
from moe_theory.sweep.results import Sweep

from .swept import SWEEP

dask = pytest.importorskip("dask")
Client = pytest.importorskip("distributed").Client
# Connections to processes that were killed are for the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:Port .* already in use"
)

LIMIT = 60.0  # seconds that anything may take on a busy machine


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(autouse=True)
def _workers_that_compile_once(programs, monkeypatch):
    for name, value in (compilation.THRESHOLDS | {compilation.VARIABLE: str(programs)}).items():
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def _collected():
    yield
    gc.collect()


@pytest.fixture
def cluster():
    cluster = Cluster()
    yield cluster
    cluster.end()


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self):
        self.port, self.processes = free_port(), []

    @property
    def address(self):
        return f"tcp://127.0.0.1:{self.port}"

    def start(self, num_workers, *options):
        here = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
        self.scheduler = self._run("dask_scheduler", "--port", str(self.port), *here, *options)
        self.add_workers(num_workers)

    def add_workers(self, number):
        for _ in range(number):
            self._run("dask_worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard")

    def kill_scheduler(self):
        self.scheduler.kill()
        self.scheduler.wait()

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def _run(self, what, *options):
        return self._begin([sys.executable, "-m", f"distributed.cli.{what}", *options])

    def _begin(self, command):
        self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.processes[-1]


class Disturbed(Progress):
    """Does something when the first chunk is there, and notes what is told."""

    def __init__(self, disturb):
        self.disturb, self.told = disturb, []

    def advance(self, amount):
        if self.disturb is not None:
            disturb, self.disturb = self.disturb, None
            disturb()

    def running(self, what):
        self.told.append(what)


def free_port():
    """A port below those that the system hands out by itself, so that nobody takes it before we do."""
    for port in range(20000 + os.getpid() % 10000, 32000):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def wait_until(is_so):
    deadline = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_there(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.thorough
def test_a_worker_killed_in_mid_run_costs_nothing_but_time(undisturbed, tmp_path):
    def kill():
        killed.append(multiprocessing.active_children()[0])
        killed[0].kill()

    killed = []
    counts = runner.run(SWEEP, tmp_path, pool=dask_pool("local:2"), progress=Disturbed(kill)).counts
    assert counts.computed == len(undisturbed)
    assert entries(tmp_path) == undisturbed
    assert not killed[0].is_alive()
    assert not multiprocessing.active_children()


@pytest.mark.thorough
def test_a_scheduler_killed_in_mid_run_and_started_again_costs_nothing_but_time(undisturbed, tmp_path, cluster):
    def start_again():
        cluster.kill_scheduler()
        cluster.start(2)

    cluster.start(2)
    progress = Disturbed(start_again)
    counts = runner.run(SWEEP, tmp_path, pool=dask_pool(cluster.address), progress=progress).counts
    assert counts.computed == len(undisturbed)
    assert entries(tmp_path) == undisturbed
    assert f"a search for the workers of Dask {cluster.address}" in progress.told


def test_a_scheduler_may_come_back_elsewhere(cluster, tmp_path):
    file = tmp_path / "scheduler.json"
    cluster.start(1, "--scheduler-file", str(file))
    pool = dask_pool(f"file:{file}")
    executor = pool.open()
    assert executor.submit(pow, 2, 3).result(LIMIT) == 8
    waiting = executor.submit(time.sleep, LIMIT)
    cluster.kill_scheduler()
    failure = waiting.exception(LIMIT)
    assert pool.is_loss(failure)
    file.unlink()
    cluster.port = free_port()
    cluster.start(2, "--scheduler-file", str(file))
    assert pool.open().submit(pow, 2, 4).result(LIMIT) == 16
    wait_until(lambda: pool.num_workers == 2)
    pool.close()


def test_that_there_are_no_workers_is_told_and_waited_out(cluster, monkeypatch, caplog):
    monkeypatch.setattr("moe_theory.sweep.watched.SILENCE", 0.1)
    cluster.start(0)
    pool = dask_pool(cluster.address)
    result = pool.open().submit(pow, 2, 3)
    wait_until(lambda: caplog.records)
    assert f"has no workers: it waits for one. To start some: dask worker {cluster.address}" in caplog.text
    assert pool.num_workers == 1
    cluster.add_workers(1)
    assert result.result(LIMIT) == 8
    pool.close()


WITHOUT = """
import sys
sys.modules["moe_theory"] = None
sys.argv = ["dask-worker", *sys.argv[1:]]
from distributed.cli.dask_worker import main
main()
"""


@pytest.mark.thorough
def test_a_worker_without_the_package_is_told_and_gets_no_tasks(cluster, caplog, tmp_path):
    """Would catch a run that waits for ever, as such a worker ends when it is sent a task."""
    sweep = Sweep(system="continual", rounds=4, replicates=32, chunk_width=16)
    cluster.start(0)
    cluster._begin([sys.executable, "-c", WITHOUT, cluster.address, "--no-nanny", "--nthreads", "1"])
    wait_for_workers(cluster, 1)
    with pytest.raises(
        InvalidRunError, match=r"no worker of Dask tcp.* has the code .* \(127\.0\.0\.1: .*ModuleNotFound.* install"
    ):
        sweep.run(tmp_path, dask=cluster.address)
    cluster.add_workers(1)
    wait_for_workers(cluster, 2)
    sweep.run(tmp_path, dask=cluster.address)
    assert "1 of 2 workers" in caplog.text
    assert "to use them, install what the others have" in caplog.text


STALE = """
import sys
import moe_theory
moe_theory.__version__ = "0.0.9"
from distributed.cli.dask_worker import main
sys.argv = ["dask-worker", *sys.argv[1:]]
main()
"""
NAMED = "1 of {} workers of Dask {} get no tasks (127.0.0.1: moe-theory 0.0.9 and not"


def add_stale(cluster):
    return cluster._begin([sys.executable, "-c", STALE, cluster.address, "--no-nanny", "--nthreads", "1"])


def wait_for_workers(cluster, number):
    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(number, timeout=LIMIT)


def test_a_worker_of_another_version_is_named_and_gets_no_tasks(undisturbed, cluster, caplog, tmp_path):
    """Would catch one stale worker that stops a run, or is the measure for the others as it came first."""
    cluster.start(0)
    add_stale(cluster)
    wait_for_workers(cluster, 1)
    cluster.add_workers(1)
    wait_for_workers(cluster, 2)
    counts = runner.run(SWEEP, tmp_path, pool=dask_pool(cluster.address)).counts
    assert counts.computed == len(undisturbed)
    assert entries(tmp_path) == undisturbed
    assert [NAMED.format(2, cluster.address) in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.thorough
def test_what_the_folder_holds_decides_among_workers_with_this_code(cluster, monkeypatch):
    """Would catch a resumption for which most workers count, so that finished chunks are not used."""
    ask = functools.partial(planning.fingerprint, "continual")
    cluster.start(2)
    with monkeypatch.context() as patch:
        patch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa=SSE4_2")
        cluster.add_workers(1)
        kept = ask()
    wait_for_workers(cluster, 3)
    pool = dask_pool(cluster.address)
    assert pool.fingerprint(ask) == ask() != kept
    assert pool.fingerprint(ask, kept) == kept
    assert pool.fingerprint(ask, kept | {"code": "of last year"}) == ask()
    pool.close()


@pytest.mark.thorough
def test_a_worker_of_another_version_that_joins_later_costs_nothing(undisturbed, cluster, caplog, tmp_path):
    def join():
        add_stale(cluster)
        wait_for_workers(cluster, 2)

    cluster.start(1)
    runner.run(SWEEP, tmp_path, pool=dask_pool(cluster.address), progress=Disturbed(join))
    assert entries(tmp_path) == undisturbed
    assert NAMED.format(2, cluster.address) in caplog.text


@pytest.mark.thorough
def test_when_all_workers_that_may_compute_are_gone_it_says_so_and_waits_for_one(
    undisturbed, cluster, caplog, monkeypatch, tmp_path
):
    """Would catch tasks that wait for ever for workers they were sent to."""

    def kill():
        good.kill()
        threading.Thread(target=start_again).start()

    def start_again():
        wait_until(lambda: "has no worker left that may compute: it waits for one" in caplog.text)
        cluster.add_workers(1)

    monkeypatch.setattr("moe_theory.sweep.watched.SILENCE", 1.0)
    cluster.start(1)
    good = cluster.processes[-1]
    wait_for_workers(cluster, 1)
    add_stale(cluster)
    wait_for_workers(cluster, 2)
    runner.run(SWEEP, tmp_path, pool=dask_pool(cluster.address), progress=Disturbed(kill))
    assert entries(tmp_path) == undisturbed


@pytest.mark.thorough
def test_a_worker_that_does_not_answer_is_named_and_not_waited_for(cluster, monkeypatch, caplog):
    monkeypatch.setattr("moe_theory.sweep.watched.SILENCE", 4.0)  # a busy machine needs some to answer at all
    ask = functools.partial(planning.fingerprint, "continual")
    cluster.start(1)
    wait_for_workers(cluster, 1)
    cluster.add_workers(1)
    wait_for_workers(cluster, 2)
    cluster.processes[-1].send_signal(signal.SIGSTOP)
    pool = dask_pool(cluster.address)
    assert pool.fingerprint(ask) == ask()
    wait_until(lambda: "get no tasks (127.0.0.1: no answer): to use them, look into the logs" in caplog.text)
    assert pool.open().submit(pow, 2, 3).result(LIMIT) == 8
    pool.close()


@pytest.mark.thorough
def test_a_run_within_a_task_of_a_cluster_with_one_thread_computes_there(cluster, tmp_path):
    """Would catch a run that waits for ever for the thread that it is itself in."""
    cluster.start(1)
    with Client(cluster.address, set_as_default=False) as client:
        sweep = Sweep(system="continual", rounds=4, replicates=16)
        assert client.submit(sweep.run, str(tmp_path), dask=cluster.address).result(LIMIT).coverage.is_complete


def test_tls_by_the_configuration_of_dask(cluster, tmp_path):
    """Would catch certificates that are dropped on the way to one of the connections."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("makes certificates")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    about = ("-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate))
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *about], check=True, capture_output=True)
    files = ("--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key))
    cluster.start(0, *files, "--protocol", "tls")
    address = cluster.address.replace("tcp:", "tls:")
    options = ("--no-nanny", "--nthreads", "1", "--no-dashboard")
    cluster._run("dask_worker", address, *files, *options)
    places = {"ca-file": certificate, "client.cert": certificate, "client.key": key}
    with dask.config.set({f"distributed.comm.tls.{name}": str(path) for name, path in places.items()}):
        pool = dask_pool(address)
        assert pool.open().submit(pow, 2, 3).result(LIMIT) == 8
        pool.close()


def test_workers_that_are_all_paused_are_told(cluster, monkeypatch, caplog):
    """Would catch a run that waits for workers at their memory limit, as Dask does without a word."""
    monkeypatch.setattr("moe_theory.sweep.watched.SILENCE", 0.5)
    cluster.start(0)
    cluster._begin(
        [sys.executable, "-m", "distributed.cli.dask_worker", cluster.address, "--no-nanny", "--memory-limit", "40MB"]
    )
    with Client(cluster.address, set_as_default=False) as client:
        wait_until(lambda: {w["status"] for w in client.scheduler_info(n_workers=-1)["workers"].values()} == {"paused"})
    pool = dask_pool(cluster.address)
    pool.open().submit(pow, 2, 3)
    wait_until(lambda: caplog.records)
    assert "has paused all its workers, at their memory limit (127.0.0.1): it waits for them" in caplog.text
    pool.close()


def test_a_sweep_runs_where_an_event_loop_does(cluster, tmp_path):
    """As every notebook has one. Would catch `asyncio.run` in the caller's thread."""
    cluster.start(1)
    sweep = Sweep(system="continual", rounds=4, replicates=16)

    async def cell():
        return sweep.run(tmp_path, dask=cluster.address)

    assert asyncio.run(cell()).coverage.is_complete


def test_what_a_task_does_wrong_is_no_loss():
    pool = dask_pool("local:1")
    executor = pool.open()
    assert pool.open() is executor
    failure = executor.submit(int, "x").exception(LIMIT)
    assert isinstance(failure, ValueError)
    assert not pool.is_loss(failure)
    deadly = executor.submit(os._exit, 1).exception(LIMIT)
    assert isinstance(deadly, ExecutorLostError)
    assert "4 workers of Dask local:1 died over the same task" in str(deadly)
    assert not pool.is_loss(deadly)
    assert executor.submit(pow, 2, 3).result(LIMIT) == 8
    pool.close()


def test_closing_waits_for_no_task_and_leaves_no_process():
    pool = dask_pool("local:1")
    executor = pool.open()
    first, second = executor.submit(time.sleep, LIMIT), executor.submit(time.sleep, LIMIT)
    assert second.cancel()
    with pytest.raises(CancelledError):
        second.result(LIMIT)
    began = time.monotonic()
    pool.close()
    assert time.monotonic() - began < LIMIT
    assert not multiprocessing.active_children()
    assert not first.done() or pool.is_loss(first.exception())
    assert pool.open().submit(pow, 2, 3).result(LIMIT) == 8  # a pool may be opened again
    pool.close()


def test_an_interrupt_from_the_terminal_ends_local_workers_without_a_word():
    code = """
import signal, threading, time
from moe_theory.sweep.dask import dask_pool
from moe_theory.sweep.results import Sweep
if __name__ == "__main__":
    asked = threading.Event()  # an exception of the signal may come where Python drops it
    signal.signal(signal.SIGINT, lambda number, frame: asked.set())
    pool = dask_pool("local:1")
    waiting = pool.open().submit(time.sleep, 60)
    print("ready", flush=True)
    asked.wait()
    pool.close()
    print("closed")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    printed, said = process.communicate(timeout=LIMIT)
    assert printed == "closed\n"
    assert "Traceback" not in said
    wait_until(lambda: not is_there(process.pid))


def test_nobody_listening_is_one_line():
    pool = dask_pool(f"tcp://127.0.0.1:{free_port()}", patience=0.5)
    with pytest.raises(ExecutorLostError, match=r"^no Dask scheduler answers at tcp://127.0.0.1:\d+ \(.*\): start .*$"):
        pool.open()
    pool.close()


def test_a_port_that_says_nothing_is_one_line():
    """Would catch a wait without an end: something listens there, and is no scheduler."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        pool = dask_pool(f"tcp://127.0.0.1:{mute.getsockname()[1]}", patience=0.5)
        with pytest.raises(
            ExecutorLostError, match=r"^no Dask scheduler answers at .* \(no answer within 1 s\): start"
        ):
            pool.open()
        pool.close()


def test_a_scheduler_file_that_never_comes_is_one_line(tmp_path):
    file = tmp_path / "scheduler.json"
    for text in (None, "", *map(json.dumps, ({"id": "x"}, {"address": 5}, ["tcp://127.0.0.1:1"], None))):
        if text is not None:
            file.write_text(text)
        with pytest.raises(ExecutorLostError, match="no Dask scheduler answers at file:"):
            dask_pool(f"file:{file}", patience=0.0).open()


@pytest.mark.parametrize(
    "address", ["", "cluster", "local", "local:0", "local:-1", "host:8786", "tcp://", "tcp://host", "http://host:80"]
)
def test_a_malformed_address_is_refused_at_once(address):
    with pytest.raises(InvalidRunError, match=rf"dask='{address}' is no address of a cluster: give tcp://HOST:PORT"):
        dask_pool(address)


def test_tls_without_certificates_is_refused():
    with pytest.raises(InvalidRunError, match=r"tls://127\.0\.0\.1:1 needs certificates"):
        dask_pool("tls://127.0.0.1:1").open()


def test_a_client_or_a_cluster_in_place_of_an_address_is_refused():
    with pytest.raises(InvalidRunError, match=r"dask=.*object.* is no address of a cluster: give tcp://HOST:PORT"):
        dask_pool(object())  # type: ignore[arg-type]


def test_without_dask_the_way_out_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidRunError, match=r"pip install 'moe-theory\[dask\]'"):
        dask_pool("local:2")
