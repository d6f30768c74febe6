"""What the package keeps of the recorded streams: experts, settings of every way to merge, scores.

    python -m benchmarks.record_streams --train        # the three models anew, in half precision
    python -m benchmarks.record_streams --tune         # twenty minutes of a core: settings, best first
    python -m benchmarks.record_streams [NAME ...]     # half an hour for all: scores.csv and digests.json
    python -m benchmarks.record_streams --arrays DIR   # arrivals, test sets and experts as .npz, for other languages

Each way to merge that has settings gets 64, one of them what it has now, the others random. The score of a policy and
of AdaMerging is its accuracy in the last phase on 8 streams of another seed, of tasks that conflict in a fixed mix that
is known, and one setting serves all families and laws; that of a merge of task vectors is accuracy on its family's
training inputs, of DARE over four masks. Tanbr and NUCB keep what `tune_testbed.py` found for them: 64 settings, on 8
such streams.
"""

import argparse
import csv
import dataclasses
import io
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tune_testbed import between
from moe_theory.merging import policies
from moe_theory.merging.benchmark import rivals, runs, scoring, streams
from moe_theory.merging.benchmark.streams import ESTIMATED, FAMILIES, KNOWN, LAWS, MIXES, Condition
from moe_theory.merging.testbed import training
from moe_theory.report.document import to_csv
from moe_theory.runs.tensors import write_safetensors

FOLDER = Path(scoring.__file__).parent
TASKS = "conflicting"  # of which settings of policies are searched
TRIALS, STREAMS, SEED = 64, 8, 7
BLIND = {policies.UNIFORM, policies.AVERAGE, policies.BEST_EXPERT, scoring.CMA_ES}  # to the mix
EVERY = [*scoring.POLICIES, *rivals.NAMES]
SEARCHED: Mapping[str, Any] = {**scoring.TUNED, **rivals.TUNED, **rivals.TUNED_BY_FAMILY}  # what each has now
Settings = Mapping[str, Any]


def train() -> None:
    """Keep the three models in half precision, and of what their experts began from the first expert."""
    for tasks, setting in FAMILIES.items():
        began = training.train(dataclasses.replace(setting, expert_steps=0))
        first = {name: part for name, part in training.arrays_of(began).items() if ".experts.0." in name}
        arrays = training.arrays_of(training.trained(setting))
        arrays |= {f"{streams.BASE}{name}": part for name, part in first.items()}
        halved = {name: part.astype(np.float16) for name, part in arrays.items()}
        write_safetensors(FOLDER / f"{tasks}.safetensors", halved, {})


def drawn(name: str, random: np.random.Generator) -> Settings:
    """A random setting of a way to merge."""

    match name:
        case policies.BEST_EXPERT:
            return {"scale": between(random, 0.003, 3)}
        case policies.GRADIENT:
            return {"noise": between(random, 0.05, 2), "rate": between(random, 0.02, 5)}
        case scoring.CMA_ES:
            return {"scale": between(random, 0.1, 3), "population": int(random.integers(4, 33))}
        case rivals.ADAMERGING:
            return {"rate": between(random, 1e-4, 0.3), "scale": between(random, 0.3, 8)}
        case "task-arithmetic":
            return {"scale": between(random, 0.1, 10)}
        case _:
            return {"scale": between(random, 0.1, 10), "density": between(random, 0.03, 1)}


def score_of(name: str, settings: Settings, tasks: str) -> float:
    """Accuracy of a way to merge with these settings: on other streams, or of task vectors on training inputs."""
    of = streams.testbed(tasks)
    if name in rivals.TUNED_BY_FAMILY:
        masks = range(rivals.MASKS // 2 if name == "dare" else 1)
        made = [rivals.merged_once(name, of, **settings, seed=seed) for seed in masks]
        return float(np.mean([rivals.right_of(each, of._replace(tests=of.calibration)) for each in made]))
    served = streams.arrivals(tasks, "fixed", SEED, STREAMS)
    if name == rivals.ADAMERGING:
        right = rivals.adapt(of, served, **settings)
    else:
        right = runs.serve_compiled(scoring.MAKERS[name](**settings), runs.params_of(of), of, served, KNOWN)
    return float(scoring.accuracies(scoring.by_phase(right))[-1].mean())


def tune(names: list[str]) -> None:
    """Search, and print as each is done."""
    for name in names or SEARCHED:
        families = FAMILIES if name in rivals.TUNED_BY_FAMILY else [TASKS]
        for tasks in families:
            random, began = np.random.default_rng(SEED), time.perf_counter()
            start = SEARCHED[name][tasks] if name in rivals.TUNED_BY_FAMILY else SEARCHED[name]
            tried = [start, *(drawn(name, random) for _ in range(TRIALS - 1))]
            found = sorted(((score_of(name, settings, tasks), str(settings)) for settings in tried), reverse=True)
            print(f"\n{name}, {tasks}, {len(found)} settings, {time.perf_counter() - began:.0f} s")
            for score, words in found[:8]:
                print(f"  {score:.4f}  {words}", flush=True)


def scored(name: str) -> Mapping[Condition, np.ndarray]:
    """Right answers of a way to merge by phase and stream, under each condition."""
    if name in scoring.POLICIES:
        own = scoring.built_in(name)
        if name not in BLIND:
            return scoring.score(own)
        known = scoring.score(own, conditions=[at for at in streams.CONDITIONS if at.mix == KNOWN])
        return {**known} | {at._replace(mix=ESTIMATED): right for at, right in known.items()}
    found: dict[Condition, np.ndarray] = {}
    for tasks in FAMILIES:
        for law in LAWS:
            right = scoring.by_phase(rivals.serve(name, tasks, streams.arrivals(tasks, law)))
            found |= {Condition(tasks, law, mix): right for mix in MIXES}  # which these are not told
    return found


def record(names: list[str]) -> None:
    """Score ways to merge, all unless some are named, and keep what is found beside the others' scores."""
    path = FOLDER / "scores.csv"
    rows: dict[str, list[dict[str, Any]]] = {}
    if names:
        for row in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8") if path.exists() else "")):
            rows.setdefault(row["method"], []).append(row)
    for name in names or EVERY:
        began, found, rows[name] = time.perf_counter(), scored(name), []
        for at, right in found.items():
            for (first, last), counts in zip(scoring.PHASES, right.tolist(), strict=True):
                own = {"method": name, **at._asdict(), "first": first, "last": last}
                rows[name].append(own | dict(zip(scoring.NUMBERS, counts, strict=True)))
        late = np.mean([scoring.accuracies(right)[-1].mean() for right in found.values()])
        print(f"{name}: {late:.3f} in the last phase, {time.perf_counter() - began:.0f} s", flush=True)
        written = [row for each in sorted(rows, key=EVERY.index) for row in rows[each]]
        path.write_text(to_csv(written), encoding="utf-8")
    digests = {tasks: streams.digest_of(tasks) for tasks in FAMILIES}
    (FOLDER / "digests.json").write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")


def write_arrays(folder: Path) -> None:
    """Write all that is recorded for programs in other languages: an .npz a family."""
    folder.mkdir(parents=True, exist_ok=True)
    for tasks in FAMILIES:
        of = streams.testbed(tasks)
        arrays = {
            f"{law}_{name}": part for law in LAWS for name, part in streams.arrivals(tasks, law)._asdict().items()
        }
        arrays |= {f"tests_{name}": np.asarray(part) for name, part in of.tests._asdict().items()}
        arrays |= {f"model_{name}": part for name, part in streams.recorded_arrays(tasks).items()}
        np.savez_compressed(folder / f"{tasks}.npz", **arrays)  # pyright: ignore[reportArgumentType]
        print(folder / f"{tasks}.npz")


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="ways to merge to score; all unless given")
    parser.add_argument("--train", action="store_true", help="train the models anew")
    parser.add_argument("--tune", nargs="*", metavar="NAME", help="search settings, of all or of some ways to merge")
    parser.add_argument("--arrays", metavar="DIR", help="write what is recorded as .npz")
    asked = parser.parse_args()
    for names, known in ((asked.names, EVERY), (asked.tune or [], SEARCHED)):
        if unknown := set(names) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}. Known: {', '.join(known)}.")
    if asked.train:
        train()
    elif asked.tune is not None:
        tune(asked.tune)
    elif asked.arrays:
        write_arrays(Path(asked.arrays))
    else:
        record(asked.names)


if __name__ == "__main__":
    main()
