# %% [markdown]
# # From one trajectory to a verdict
#
# The paper is *Theory on Mixture-of-Experts in Continual Learning* (H. Li, S. Lin, L. Duan, Y. Liang, N. B. Shroff).
# Linear-regression tasks arrive one at a time; a router sends each to one of M overparameterized experts, which
# moves to the nearest model that fits, and after a while the router stops learning. Ten steps lead from one run of
# that algorithm to a verdict on one of the paper's statements. Change a number below and run the script again.

# %%
import subprocess
import sys
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import moe_theory as mt
from moe_theory import continual
from moe_theory.verify.statement import ordering

SEED = 0  # of every random number below
ROUNDS = 500  # T, arrivals in a run
REPLICATES = 1000  # runs on one pool of tasks, in steps 4 to 7
SWEEP_REPLICATES = 128  # runs of each cell in step 8
CLAIM_REPLICATES = 8192  # runs at most, in steps 9 and 10
OUT = Path("runs/tour")  # for the pictures and what is kept

# %%
OUT.mkdir(parents=True, exist_ok=True)
plt.style.use("moe_theory.plot.style")
plt.rc("figure", figsize=(6.4, 2.6))
plt.rc("figure.constrained_layout", use=True)
LEGEND = {"loc": "outside upper center", "ncols": 3}
SEEN = {"color": "C0", "linewidth": 1.8, "label": "mean of the runs"}
BAND = {"color": "C0", "alpha": 0.16, "linewidth": 0}
PRINTED = {"color": "C1", "linestyle": "--", "label": "as printed"}
RIGHT = {"color": "#228833", "label": "exact"}

# %% [markdown]
# ## Step 1: A pool of tasks and one arrival
#
# A pool has N = 6 ground truths in K = 3 clusters, with d = 10 features, and a signal for each truth. An arrival is
# one task with a feature matrix of s = 6 samples, fewer than features: one column carries the task's signal, the
# others are noise. On the left, the darker the square, the nearer two tasks; the blocks of two by two on the diagonal
# are clusters. On the right, the signal is the column that stands out.

# %%
sizes = {"num_tasks": 6, "num_features": 10, "num_samples": 6}
dims = continual.Dims(max_experts=12, **sizes)
params = continual.Params(num_experts=5)  # the others have defaults
key = mt.root_key(SEED)
pool = jax.jit(continual.system(dims).init)(key, params).pool
draw = jax.jit(continual.draw, static_argnums=1)
arrival, _ = draw(jax.random.fold_in(key, 1), dims, pool, params)
lengths = np.linalg.norm(arrival.features, axis=0)
print(f"task {arrival.task} of cluster {pool.clusters[arrival.task]}")
print("lengths of the columns:", *lengths.round(2))

# %%
order = np.argsort(pool.clusters, stable=True)
truths = np.asarray(pool.truths)[order]
distances = np.linalg.norm(truths[:, None] - truths, axis=-1)
figure, (left, right) = plt.subplots(1, 2)
image = left.imshow(distances, cmap="Blues_r", vmin=0)
figure.colorbar(image, label="distance of two truths")
left.set(title="the pool", xlabel="task", ylabel="task")
left.set_xticks(range(6), order)
left.set_yticks(range(6), order)
top = np.abs(arrival.features).max()
image = right.imshow(arrival.features, "PuOr", vmin=-top, vmax=top)
right.set_aspect("auto")
figure.colorbar(image, label="entry of the features")
right.set(title=f"an arrival of task {arrival.task}")
right.set(xlabel="sample", ylabel="feature")
figure.savefig(OUT / "01-pool-and-arrival.svg")

# %% [markdown]
# ## Step 2: Algorithm 1, round by round
#
# `continual.learn` is one round on explicit data: from a state and an arrival to the next state and what the round
# showed. If you have arrivals of your own, here is where they go in. The shade is the router's probability of each
# expert; a dot marks the expert that got the task, the one with the largest gate output after a small perturbation.
# Exploration ends at T1, and only after it may the router stop learning.

# %%
@jax.jit
def one_round(state, time):
    draws = jax.random.fold_in(key, time)
    arrival, perturbation = continual.draw(draws, dims, pool, params)
    return continual.learn(state, arrival, perturbation, params)

state, shown = continual.begin(dims, params, pool), []
for time in range(1, 61):
    state, info = one_round(state, time)
    shown.append(info)
for time, info in enumerate(shown[:5], 1):
    print(f"round {time}: task {info.task} to expert {info.expert}")
print("rounds of each expert by now:", *state.visits[:5])

# %%
chosen = np.array([int(info.expert) for info in shown])
chances = np.array([info.gate_probabilities[:5] for info in shown])
explored = continual.theory.exploration_rounds(5, params.learning_rate)
figure, panel = plt.subplots(figsize=(6.4, 1.9))
frame = (0.5, 60.5, 4.5, -0.5)
image = panel.imshow(chances.T, "Blues", aspect="auto", extent=frame)
figure.colorbar(image, label="probability")
panel.plot(np.arange(1, 61), chosen, "o", color="C1", markersize=3)
panel.axvline(explored + 0.5, color="0.3", linestyle=":")
panel.text(explored + 1, -0.55, "$T_1$", va="bottom")
panel.set(xlabel="round $t$", ylabel="expert", yticks=range(5))
figure.savefig(OUT / "02-gates.svg")

# %% [markdown]
# ## Step 3: The same run as one program
#
# `mt.simulate` runs all rounds in one compiled scan, and from the same key it draws the same arrivals. A mark is a
# task, in the row of the expert that learned it and in the colour of its cluster. The fewer colours a row has late
# in the run, the more its expert has specialised.

# %%
system = continual.on_pool(dims, pool)
final, info = mt.simulate(system, key, params, ROUNDS)
experts, tasks = np.asarray(info.expert), np.asarray(info.task)
agreeing = int(np.sum(experts[:60] == chosen[:ROUNDS]))
print(f"same expert as in step 2 in {agreeing} of {min(ROUNDS, 60)} rounds")
print("the router has stopped learning:", bool(final.terminated))

# %%
figure, panel = plt.subplots(figsize=(6.4, 2.2))
for cluster, colour in enumerate(["#4477aa", "#ee6677", "#ccbb44"]):
    times = np.flatnonzero(np.asarray(pool.clusters)[tasks] == cluster)
    style = {"color": colour, "label": f"cluster {cluster}"}
    panel.plot(times + 1, experts[times], "|", markersize=12, **style)
panel.set(xlabel="round $t$", ylabel="expert")
panel.set(yticks=range(5), ylim=(4.5, -0.5))
figure.legend(**LEGEND)
figure.savefig(OUT / "03-routes.svg")

# %% [markdown]
# ## Step 4: Many runs at once
#
# `mt.simulate_batch` runs the same system for many replicates, each named by an integer that decides all its draws;
# `observe` says what to keep of a round. Forgetting is how much the error on past arrivals has grown since they were
# learned, the generalization error what it is now, both as means over the past. The shade spans from the 10 % to the
# 90 % quantile of the runs.

# %%
def observe(state, info):
    kept = {"F": info.forgetting, "G": info.generalization_error}
    kept |= {"loads": state.visits, "explored": state.explored_visits}
    return kept | {"stopped": state.terminated}

batch = REPLICATES, params, ROUNDS
_, five = mt.simulate_batch(system, key, *batch, observe=observe)
rounds = mt.recorded_rounds(ROUNDS)
ends = {name: float(five[name][-1].mean()) for name in ("F", "G")}
stopped = float(five["stopped"][-1].mean())
print(f"forgetting {ends['F']:.3f}, generalization error {ends['G']:.3f}")
print(f"the router has stopped learning in {stopped:.0%} of the runs")

# %%
NAMES = {"F": "forgetting $F_t$", "G": "generalization error $G_t$"}
figure, panels = plt.subplots(1, 2)
for panel, name in zip(panels, NAMES):
    low, high = np.quantile(five[name], [0.1, 0.9], axis=1)
    panel.fill_between(rounds, low, high, label="10–90 %", **BAND)
    panel.plot(rounds, np.mean(five[name], axis=1), **SEEN)
    panel.set(xlabel="round $t$", ylabel=NAMES[name], xscale="log")
figure.legend(*panel.get_legend_handles_labels(), **LEGEND)
figure.savefig(OUT / "04-many-runs.svg")

# %% [markdown]
# ## Step 5: A closed form over the runs
#
# For one expert Proposition 4 gives both expectations in closed form; `continual.theory` has it as printed. What is
# exact for this pool, a recursion over the moments of the expert, is in `continual.exact`. The number of experts is
# an argument of the compiled program, so nothing is compiled again. Look at which line the dots follow.

# %%
single = REPLICATES, params._replace(num_experts=1), ROUNDS
_, one = mt.simulate_batch(system, key, *single, observe=observe)
gaps = continual.theory.gaps(pool)
ratio = continual.theory.overparameterization_ratio(10, 6)
printed = continual.theory.proposition_4(gaps, ratio, rounds)
exact = continual.exact.single_expert(pool, 6, ROUNDS)
lines = {"F": (printed.forgetting, exact.forgetting)}
lines["G"] = printed.generalization_error, exact.generalization_error
for name, (as_printed, as_exact) in lines.items():
    last = np.asarray(one[name][-1], float)
    error = last.std(ddof=1) / REPLICATES**0.5
    print(f"{name} in round {ROUNDS}: mean {last.mean():.3f} ± {error:.3f},",
          f"printed {as_printed[-1]:.3f}, exact {as_exact[-1]:.3f}")

# %%
figure, panels = plt.subplots(1, 2)
marks = np.unique(np.geomspace(1, ROUNDS, 16).astype(int)) - 1
for panel, name in zip(panels, lines):
    panel.plot(rounds, lines[name][0], **PRINTED)
    panel.plot(rounds, lines[name][1], **RIGHT)
    mean = np.mean(one[name], axis=1)[marks]
    panel.plot(rounds[marks], mean, "o", **SEEN | {"markersize": 4})
    panel.set(xlabel="round $t$", ylabel=NAMES[name], xscale="log")
figure.legend(*panel.get_legend_handles_labels(), **LEGEND)
figure.savefig(OUT / "05-proposition-4.svg")

# %% [markdown]
# ## Step 6: The theorems' bounds, from each run's own loads
#
# Theorem 2 (fewer experts than tasks) and Theorem 1 (more) bound the same means through the loads, the numbers of
# rounds that each expert was chosen in. Every run has loads of its own and so a bound of its own; the mean of the
# bounds belongs above the mean of the runs. Where the solid line is above the dashed one, the bound as printed fails
# in these runs. For the bounds of another of the papers, try `moe-theory bound`.

# %%
twelve = REPLICATES, params._replace(num_experts=12), ROUNDS
_, many = mt.simulate_batch(system, key, *twelve, observe=observe)
theory = continual.theory
cases = {5: (five, theory.theorem_2), 12: (many, theory.theorem_1)}
bounds, above = {}, {}
for size, (runs, theorem) in cases.items():
    loads, explored = (np.moveaxis(runs[name], 1, -1).astype(float)
                       for name in ("loads", "explored"))
    bound = theorem(gaps, ratio, loads, explored, rounds[:, None])
    bounds[size, "F"] = bound.forgetting.mean(axis=1)
    bounds[size, "G"] = bound.generalization_error.mean(axis=1)
for (size, name), bound in bounds.items():
    is_above = np.mean(cases[size][0][name], axis=1) > bound
    above[f"M = {size}, {name}"] = share = float(is_above.mean())
    print(f"M = {size}, {name}: mean above bound in {share:.0%} of rounds")

# %%
figure, panels = plt.subplots(2, 2, figsize=(6.4, 4), sharex=True)
for row, name in zip(panels, NAMES):
    for panel, size in zip(row, cases):
        mean = np.mean(cases[size][0][name], axis=1)
        panel.plot(rounds, mean, **SEEN)
        panel.plot(rounds, bounds[size, name], **PRINTED)
        panel.set(xscale="log", ylabel=NAMES[name])
panels[0, 0].set_title("Theorem 2: M = 5, N = 6")
panels[0, 1].set_title("Theorem 1: M = 12, N = 6")
for panel in panels[1]:
    panel.set_xlabel("round $t$")
figure.legend(*panel.get_legend_handles_labels(), **LEGEND)
figure.savefig(OUT / "06-theorems.svg")

# %% [markdown]
# ## Step 7: With and without early termination
#
# Algorithm 1 stops the router's updates once the experts' gate outputs are near one another. Here the router of
# twelve experts never stops, while the replicates meet the same arrivals as before: common random numbers, so that
# differences are paired. A point on the right is one replicate; below the diagonal, termination left it the smaller
# error. Runs on the diagonal did not stop before the last round, or stopping changed no route.

# %%
endless = params._replace(num_experts=12, terminate=False)
batch = REPLICATES, endless, ROUNDS
_, never = mt.simulate_batch(system, key, *batch, observe=observe)
stops, goes_on = np.asarray([many["G"][-1], never["G"][-1]], float)
gain = float(np.mean(goes_on - stops))
error = float(np.std(goes_on - stops, ddof=1) / REPLICATES**0.5)
smaller, larger = np.mean(stops < goes_on), np.mean(stops > goes_on)
print(f"G without termination minus G with it: {gain:.3f} ± {error:.3f}")
print(f"smaller with it in {smaller:.0%}, larger in {larger:.0%} of the runs")

# %%
figure, (left, right) = plt.subplots(1, 2)
for runs, label, colour in (many, "with", "C0"), (never, "without", "C2"):
    style = SEEN | {"color": colour, "label": f"{label} termination"}
    left.plot(rounds, np.mean(runs["G"], axis=1), **style)
left.set(xlabel="round $t$", ylabel=NAMES["G"], xscale="log")
left.legend()
style = {"markersize": 2.5, "markeredgewidth": 0, "alpha": 0.4}
right.plot(goes_on, stops, "o", color="C0", **style)
right.axline((0, 0), slope=1, color="0.5", linewidth=0.8)
right.set(xlabel="$G_T$ without termination", ylabel="$G_T$ with it")
figure.savefig(OUT / "07-termination.svg")

# %% [markdown]
# ## Step 8: A sweep
#
# `mt.Sweep` is a grid of settings, many replicates each, every one with a pool of its own. The number of experts and
# the switch of termination are traced values, so one compiled program serves the whole grid. What is finished stays
# in the folder: running again computes only what is missing. Results come as labelled xarray data.

# %%
grid = [1, 2, 3, 4, 6, 8, 12, 16]
sweep = mt.Sweep(
    system="continual", rounds=ROUNDS, replicates=SWEEP_REPLICATES,
    axes={"terminate": [True, False], "num_experts": grid}, seed=SEED,
)
data = sweep.run(OUT / "sweep").to_xarray()
last = data.generalization_error.isel(round=-1)
print(f"mean generalization error in round {ROUNDS}:")
means = last.sel(statistic="mean")
best = int(means.sel(terminate=True).idxmin())
print(means.to_pandas().round(2).to_string())
print(f"with termination it is smallest for M = {best}")

# %%
figure, panel = plt.subplots()
bars = 2 * last.sel(statistic="standard_error")
styles = {True: {"color": "C0", "label": "with termination"}}
styles[False] = {"color": "C2", "label": "without termination"}
for switch, style in styles.items():
    mean = means.sel(terminate=switch)
    error = bars.sel(terminate=switch)
    panel.errorbar(grid, mean, error, marker="o", markersize=4, **style)
panel.set(xlabel="number of experts $M$", ylabel="$G_T$", xticks=grid)
panel.legend(title="mean ± 2 standard errors")
figure.savefig(OUT / "08-sweep.svg")

# %% [markdown]
# ## Step 9: A verdict
#
# A curve that looks right, or wrong, shows nothing by itself. `mt.verify` judges Proposition 4's forgetting as printed,
# and the exact form that replaces it, over sixteen pools. Replicates double until the interval of observed minus
# predicted lies within a margin that was declared beforehand (SUPPORTED) or beyond it (REFUTED), or until they run
# out (INCONCLUSIVE). Beside each verdict stands its power, the difference that would have shown with probability
# 0.9. Statements of the other papers are judged in the same way, such as `edge.theorem-1*`, `generalization:exact`
# or `merging:exact`.

# %%
CLAIMS = "continual.proposition-4.forgetting", "continual.exact.forgetting"
ASKED = {"readings": "unit-signal", "replicates": CLAIM_REPLICATES}
ASKED["error"] = 0.01
verdicts = mt.verify(CLAIMS, **ASKED, seed=SEED)
for verdict in verdicts:
    low, high = verdict.interval
    print(f"{verdict.claim}: {verdict.status}")
    print(f"  {verdict.replicates} replicates; {verdict.at}:",
          f"predicted {verdict.predicted:.3f},",
          f"observed {verdict.observed:.3f},")
    print(f"  difference in [{low:.3f}, {high:.3f}],",
          f"margin {verdict.margin:.3f};")
    print(f"  power: {verdict.smallest_discrepancy:.3f} would have shown;",
          f"error at most {verdict.error:.3f}")

# %%
def plot_verdict(panel, verdict, style):
    curve, shade = verdict.curve, BAND | {"color": style["color"]}
    times = [int(label.removeprefix("t = ")) for label in curve.labels]
    predicted, margin = np.array(curve.predicted), np.array(curve.margin)
    low, high = predicted + curve.low, predicted + curve.high
    panel.fill_between(times, predicted - margin, predicted + margin, **shade)
    panel.plot(times, predicted, **style)
    panel.vlines(times, low, high, color="C0")
    panel.plot(times, curve.observed, "o", **SEEN | {"markersize": 4})
    panel.set(xlabel="round $t$", ylabel=NAMES["F"], ylim=(0, None))
    panel.legend(title=verdict.status)

figure, panels = plt.subplots(1, 2, sharey=True)
for panel, verdict, style in zip(panels, verdicts, (PRINTED, RIGHT)):
    plot_verdict(panel, verdict, style)
figure.savefig(OUT / "09-verdicts.svg")

# %% [markdown]
# ## Step 10: A claim of your own
#
# Let every task train the two experts with the highest gate outputs instead of one, which the paper does not study,
# and conjecture that less is then forgotten. A statement says so, and a claim tests it: a function measures each
# replicate of a run, here of two runs together, and the mean is compared, here with another measurement of the same
# replicates. In a file, it is judged by `moe-theory verify --module FILE`, which also writes a page. The last cell
# does so for the claims of step 9.

# %%
wider = continual.Dims(max_experts=5, max_active=2, **sizes)
name = "tour.two-experts-a-task"
one_expert = {"num_experts": 5}
two_experts = one_expert | {"num_active": 2}

experiment = mt.Experiment(
    name="two-experts-a-task", dims=wider, system=continual.system(wider),
    cells={"one": one_expert, "two": two_experts}, observe=observe,
    num_rounds=ROUNDS, record_every=ROUNDS // 10,
    replicates=CLAIM_REPLICATES,
)
conjecture = mt.statement(
    "two-experts-a-task", paper="continual", where="a conjecture",
    says="Two experts that learn each task forget less than one.",
)
less = ordering(below=lambda two, one: one.records["F"])
both = experiment.together("two", "one")

@conjecture.claim(name, both, less, role="charitable")
def forgetting_of_two(two, one):
    """Of five experts, two that learn each task forget less than one does."""
    return two.records["F"]  # (rounds, replicates): replicates come last

# %%
(own,) = mt.verify(name, readings="unit-signal", error=0.01, seed=SEED)
low, high = own.interval
print(f"{own.claim}: {own.status}, {own.replicates} replicates")
print(f"  {own.at}: with two minus with one in [{low:.3f}, {high:.3f}]")
figure, panel = plt.subplots()
plot_verdict(panel, own, {"color": "0.4", "label": "one expert a task"})
figure.savefig(OUT / "10-own-claim.svg")

# %%
options = ["--reading", "unit-signal", "--seed", f"{SEED}"]
options += ["--replicates", f"{CLAIM_REPLICATES}", "--error", "0.01"]
command = ["verify", *CLAIMS, *options, "--out", f"{OUT / 'report'}"]
python = [sys.executable, "-m", "moe_theory", *command]
done = subprocess.run(python, stdout=subprocess.PIPE, text=True, check=True)
print("moe-theory", *command)
print(done.stdout.splitlines()[-1])
