"""`pytest benchmarks --pinned` measures on one core; without it, on all that the process may use."""

import os

import pytest


def pytest_addoption(parser):
    parser.addoption("--pinned", action="store_true", help="keep to one core, from before JAX starts")


def pytest_configure(config):
    if config.getoption("--pinned"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def pytest_report_header():
    return f"benchmarks on {len(os.sched_getaffinity(0))} core(s)"


@pytest.fixture(scope="session")
def cores(request):
    return "one" if request.config.getoption("--pinned") else "all"


@pytest.fixture(scope="session")
def num_threads():
    return len(os.sched_getaffinity(0))
