"""What a user waits for, call by call and command by command: `benchmarks.calls`."""

from benchmarks.calls import calls, commands


def test_calls(benchmark, cores):
    rows = benchmark.pedantic(lambda: [*calls(), *commands()], rounds=1)
    benchmark.extra_info |= {"part": "calls", "cores": cores, "rows": [row._asdict() for row in rows]}
    print("\n" + "\n".join(f"{row.name}: {row.first:.2f} s, again {row.again:.4f} s" for row in rows))
