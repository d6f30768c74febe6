"""Dask's workers: catches chunks that a loss changes or drops, a wait without an end, and processes left behind."""

import contextlib
import gc
import importlib.util
import multiprocessing
import os
import socket
import subprocess
import sys
import time

import pytest
from refusals import refusal
from stored import rows

from moe_theory.core.errors import InvalidValueError, WorkersError
from moe_theory.runs import Progress
from moe_theory.runs.pools import dask_pool
from moe_theory.sweep import runner

from .swept import SWEEP

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
# Connections to processes that were killed are for the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:Port .* already in use"
)

LIMIT = 60.0  # seconds that anything may take on a busy machine


@pytest.fixture
def collects():
    """What distributed leaves is collected after a test."""
    yield
    gc.collect()


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self):
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes = []

    def start(self, num_workers, *options):
        here = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
        scheduler = self.run("dask_scheduler", "--port", str(self.port), *here, *options)
        for _ in range(num_workers):
            self.run("dask_worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard")
        return scheduler

    def run(self, what, *options):
        command = [sys.executable, "-m", f"distributed.cli.{what}", *options]
        self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.processes[-1]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()


@pytest.fixture
def cluster(collects):
    made = Cluster()
    yield made
    made.end()


class AtFirst(Progress):
    """Kills a process when the first result has come."""

    def __init__(self, process):
        self.process = process

    def advance(self, replicate_rounds):
        self.process.kill()


def free_port():
    """A port below those that the system hands out by itself, so that nobody takes it before we do."""
    for port in range(20000 + os.getpid() % 10000, 32000):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@pytest.mark.parametrize("num_workers", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_processes_of_this_machine_give_the_same_bytes_and_end(undisturbed, tmp_path, collects, num_workers):
    counts = runner.run(SWEEP, tmp_path, pool=dask_pool(f"local:{num_workers}")).counts
    assert counts.computed == 18
    assert rows(tmp_path) == undisturbed
    deadline = time.monotonic() + LIMIT
    while multiprocessing.active_children():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.thorough
def test_a_killed_scheduler_ends_the_run_and_the_same_call_resumes(undisturbed, tmp_path, cluster):
    scheduler = cluster.start(1)
    with pytest.raises(WorkersError) as told:
        SWEEP.run(tmp_path, dask=cluster.address, progress=AtFirst(scheduler))
    assert "\n" not in str(told.value)
    saved = rows(tmp_path)
    assert saved.items() < undisturbed.items()
    cluster.end()
    cluster.start(1)
    counts = runner.run(SWEEP, tmp_path, pool=dask_pool(cluster.address)).counts
    assert (counts.present, counts.computed) == (len(saved), 18 - len(saved))
    assert rows(tmp_path) == undisturbed


def test_a_malformed_address_is_refused_at_once():
    words = ("", "cluster", "local", "local:0", "local:-1", "host:8786", "tcp://", "tcp://host", "http://host:80")
    for address in (*words, object()):
        assert refusal(InvalidValueError, dask_pool, address).argument == "dask"


def test_without_dask_the_way_out_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'moe-theory[dask]'" in str(refusal(InvalidValueError, dask_pool, "local:2"))
