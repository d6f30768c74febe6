"""Who holds what: catches claims that two have, holders that nobody can name, and forked children that hang."""

import errno
import json
import os
import signal
import threading

import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import InvalidRunError
from moe_theory.runs import locks
from moe_theory.runs.files import pack
from moe_theory.runs.locks import Holder, held_by
from moe_theory.runs.store import Store
from moe_theory.sweep import results

TASK, FORKS, LIMIT = {"first": 0}, 20, 60  # the limit in seconds: a child that hangs fails, and does not hang the suite

FORK_WARNINGS = "ignore:.*fork"  # of JAX and of Python: they are what is tested


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "run")
    yield store
    store.close()


def in_child(do):
    """The exit status of a forked child that does something: 0 unless it raises."""
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT)
        try:
            do()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return child


def all_fine(children):
    return [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


@pytest.mark.filterwarnings(FORK_WARNINGS)
def test_one_thread_or_process_has_a_name_and_says_so(store):
    assert store.claim("a")
    assert not Store(store.folder).claim("a")
    assert store.claim("b")

    def other():
        assert not store.claim("a")
        assert store.holders(["a"])[0].pid == os.getppid()
        assert store.claim("c")

    assert all_fine([in_child(other)])
    assert store.claim("c"), "a claim ends with its process"
    (holder,) = store.holders(["a"])
    assert (holder.pid, holder.is_stopped) == (os.getpid(), False)
    store.release("a")
    assert store.holders(["a"]) == [None]
    assert Store(store.folder).claim("a")


def test_holders_are_told_by_process(store):
    noon = 12 * 3600
    one, two = Holder(7, "node-1", noon), Holder(8, "node-1", noon + 60)
    told = held_by([one, two, one, None], "chunk", "chunks")
    assert told.startswith("process 7 on node-1 holds 2 chunks since 1970-01-0")
    assert "; process 8 on node-1 holds 1 chunk since " in told
    assert told.endswith("; another process holds 1 chunk")
    store.claim("a")
    (record,) = (store.folder / ".claims").iterdir()
    assert list(json.loads(record.read_text())["since"]) == ["a"]
    other = record.with_name("another.json")
    silly = ({"pid": "x", "since": {"b": 0}}, {"since": ["b"]}, {"pid": 7, "since": {"b": noon}})
    times = (float("nan"), float("inf"), 1e300, -1, 10**400)
    texts = map(json.dumps, (*silly, *({"pid": 7, "host": "", "since": {"b": when}} for when in times)))
    for text in ("", "{}", "[]", "[" * 100_000, *texts):
        other.write_text(text)
        assert store.holders(["b"]) == [None]
    other.write_text(json.dumps({"pid": 7, "host": "node-1", "since": {"b": noon}}))
    assert store.holders(["b"]) == [Holder(7, "node-1", noon)]
    os.utime(other, (0, 0))
    assert store.holders(["b"]) == [None], "whoever wrote it has been killed"


def test_a_claim_that_ends_while_it_is_asked_for_fails_nobody(store):
    """Would catch a thread that fails when another of the same process releases what it looks at."""

    class Ending(dict):
        def keys(self):
            found = [*super().keys()]
            self.clear()
            return set(found)

    assert store.claim("a")
    store._opened._held = Ending(store._opened._held)
    assert store.holders(["a"])[0].pid == os.getpid()


def test_many_claims_are_written_down_once_a_second(store):
    """Would catch a file for each of ten thousand claims, and a holder that nobody learns of."""
    names = [str(number) for number in range(1000)]
    assert all(map(store.claim, names))
    (record,) = (store.folder / ".claims").iterdir()
    assert len(json.loads(record.read_text())["since"]) < 100
    os.utime(record, (0, 0))
    store._opened._published = 0.0
    store.publish()
    assert set(json.loads(record.read_text())["since"]) == set(names)
    store.close()
    assert not list((store.folder / ".claims").iterdir())


def test_without_locks_claims_are_read_where_they_are_written_down(store, monkeypatch, caplog):
    """Would catch a file system without locks on which all processes of an array compute everything."""

    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "lockf", refused)
    assert store.claim("a")
    assert not store.claim("a")
    assert caplog.text.count("without locks (No locks available)") == 1
    other = {"pid": 7, "host": "node-1", "since": {"b": 1}}
    (store.folder / ".claims" / "other.json").write_text(json.dumps(other))
    assert not store.claim("b")
    assert store.claim("c")


@pytest.mark.filterwarnings(FORK_WARNINGS)
def test_a_forked_child_reads_what_a_thread_of_its_parent_was_reading():
    cache = results._Cache(100)
    with cache._lock:
        assert all_fine([in_child(lambda: cache.get("cell", lambda: 1))])


@pytest.mark.filterwarnings(FORK_WARNINGS)
def test_forked_children_do_not_wait_for_threads_that_they_do_not_have(store):
    """The parent's threads claim and write all the while; a child keeps what is its own, and is told what it cannot."""
    mt.root_key(0)  # JAX is used
    is_over = threading.Event()

    def busy(name):
        while not is_over.is_set():
            assert store.claim(name)
            store.write(name, pack(TASK, {"a": np.arange(3)}))
            store.release(name)

    def use(name):
        assert store.claim(name)
        store.write(name, pack(TASK, {"a": np.arange(3)}))
        assert store.read(name, TASK)["a"][2] == 2
        store.release(name)
        with pytest.raises(InvalidRunError, match=r"forked from process .*spawn"):
            mt.root_key(0)
        with pytest.raises(InvalidRunError, match="had used JAX"):
            mt.verify("generalization.lemma-6.growth", readings="quick", replicates=64)

    threads = [threading.Thread(target=busy, args=(f"thread-{number}",)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        children = [in_child(lambda name=f"child-{number}": use(name)) for number in range(FORKS)]
        assert all_fine(children)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
