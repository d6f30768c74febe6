"""Merges whose right answer is known: catches an average of unmatched units, a sign that loses its election, draws that
follow the pieces a tensor is cut into, and a beginning that is added twice."""

import itertools

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from moe_theory import merging
from moe_theory.checkpoints import Method, merge_checkpoint, methods
from moe_theory.checkpoints.methods import add_weighted, alignment, check_method, hidden_units, merge_tensors
from moe_theory.core.errors import InvalidParamsError, UnknownNameError
from moe_theory.runs.tensors import InvalidCheckpointError

D, F, K = 5, 7, 3
WEIGHTS = np.array([0.2, 0.5, 0.3])


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def gated(inputs, gate, up, down, gate_bias=0.0, up_bias=0.0):
    """An expert's outputs, by matrices that multiply from the right."""
    return (np.tanh(inputs @ gate + gate_bias) * (inputs @ up + up_bias)) @ down


# Layouts: how an expert is stored, and how its outputs are computed from that.
LAYOUTS = {
    "linear": (
        lambda g, u, d: {"gate_proj.weight": g.T, "up_proj.weight": u.T, "down_proj.weight": d.T},
        lambda x, e: gated(x, e["gate_proj.weight"].T, e["up_proj.weight"].T, e["down_proj.weight"].T),
    ),
    "one after the other": (
        lambda g, u, d: {"gate_up_proj": np.concatenate([g, u], 1), "down_proj": d},
        lambda x, e: gated(x, e["gate_up_proj"][:, :F], e["gate_up_proj"][:, F:], e["down_proj"]),
    ),
    "rows of both": (
        lambda g, u, d: {"input_linear.weight": np.concatenate([g, u], 1).T, "output_linear.weight": d.T},
        lambda x, e: gated(x, *np.split(e["input_linear.weight"].T, 2, 1), e["output_linear.weight"].T),
    ),
    "in turn, with biases": (
        lambda g, u, d: {
            "gate_up_proj": np.stack([g, u], 2).reshape(D, 2 * F),
            "gate_up_proj_bias": np.stack([g[0], u[1]], 1).reshape(-1),
            "down_proj": d,
            "down_proj_bias": np.ones(D, np.float32),
        },
        lambda x, e: gated(
            x, e["gate_up_proj"][:, ::2], e["gate_up_proj"][:, 1::2], e["down_proj"],
            e["gate_up_proj_bias"][::2], e["gate_up_proj_bias"][1::2],
        ) + e["down_proj_bias"],
    ),
}  # fmt: skip


def permuted(layout, seed=0):
    """K experts that compute the same, with their hidden units in other orders."""
    gate, up, down = drawn(D, F, seed=seed), drawn(D, F, seed=seed + 1), drawn(F, D, seed=seed + 2)
    orders = [np.random.default_rng(number).permutation(F) for number in range(K)]
    return [LAYOUTS[layout][0](gate[:, order], up[:, order], down[order]) for order in orders]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_aligned_experts_that_compute_the_same_keep_their_outputs(layout):
    """The average of permuted copies is another function; the aligned one is theirs, whatever the layout."""
    experts, inputs = permuted(layout), drawn(11, D, seed=9)
    outputs = LAYOUTS[layout][1]
    expected = outputs(inputs, experts[0])
    stacked = {name: np.stack([expert[name] for expert in experts]) for name in experts[0]}
    aligned = merging.merge(stacked, WEIGHTS, Method("aligned"))
    np.testing.assert_allclose(outputs(inputs, aligned), expected, rtol=1e-4, atol=1e-4)
    average = {name: np.tensordot(WEIGHTS, array, 1) for name, array in stacked.items()}
    assert np.abs(outputs(inputs, average) - expected).max() > 0.1 * np.abs(expected).max()


@pytest.mark.parametrize("layout", ["linear", "one after the other", "rows of both"])
def test_alignment_is_the_best_of_all_permutations(layout):
    """Against a search through all of them, for experts that are not alike."""
    made = [LAYOUTS[layout][0](drawn(D, 4, seed=s), drawn(D, 4, seed=s + 1), drawn(4, D, seed=s + 2)) for s in (0, 10)]
    (order,) = [own for own in alignment(made, np.array([0.6, 0.4])) if own is not None]
    units = hidden_units({name: part.shape for name, part in made[0].items()})

    def likeness(places):
        total = 0.0
        for name, own in units.items():
            total += np.sum(made[0][name] * np.take(made[1][name], own.places(np.array(places)), own.axis))
        return total

    found = sum(np.sum(made[0][name] * np.take(made[1][name], own.places, own.axis)) for name, own in order.items())
    assert found == pytest.approx(max(map(likeness, itertools.permutations(range(4)))), rel=1e-5)


def test_units_that_can_be_on_either_axis_are_refused():
    with pytest.raises(InvalidParamsError, match="can be on either axis"):
        hidden_units({"w_in": (4, 4), "w_out": (4, 4)})
    assert hidden_units({"up.weight": (4, 4), "down.weight": (4, 4)})["down.weight"].axis == 1  # torch's own order
    assert {name: own.axis for name, own in hidden_units({"w1": (6, 4), "w2": (6, 4)}).items()} == {"w1": 0, "w2": 0}


def test_ties_by_hand():
    """Of each difference the larger half, the sign of the heavier side, and the average of those that have it."""
    base = np.full(4, 10.0, np.float32)
    parts = [base + np.array(row, np.float32) for row in ([4, -3, 1, 0.5], [-2, -5, 0.1, 3], [1, 6, -0.2, 2])]
    weights = np.array([0.5, 0.25, 0.25])
    # kept: [4 -3 . .], [. -5 . 3], [. 6 . 2]; sums [2, -1.25, 0, 1.25]
    expected = base + 2 * np.array([4, (0.5 * -3 + 0.25 * -5) / 0.75, 0, 2.5])
    merged = merge_tensors(parts, weights, Method("ties", scale=2.0, density=0.5), base)
    np.testing.assert_allclose(merged, expected, rtol=1e-6)


def test_dare_keeps_entries_at_random_and_their_mean(monkeypatch):
    """Against what a merge of one difference can be: 0 or 1/p; the same draws however the tensor is cut."""
    base, parts = np.zeros((200, 50), np.float32), [np.ones((200, 50), np.float32)] * 2
    merged = merge_tensors(parts, np.array([0.5, 0.5]), Method("dare", density=0.25, seed=3), base)
    assert set(np.unique(merged)) == {0.0, 2.0, 4.0}
    assert merged.mean() == pytest.approx(1, abs=5 * np.sqrt(3 / 2 / merged.size))
    monkeypatch.setattr(methods, "_PIECE", 333)
    again = merge_tensors(parts, np.array([0.5, 0.5]), Method("dare", density=0.25, seed=3), base)
    np.testing.assert_array_equal(again, merged)
    other = merge_tensors(parts, np.array([0.5, 0.5]), Method("dare", density=0.25, seed=3), base, stream=1)
    assert (other != merged).any()


def test_methods_agree_where_they_must():
    """Scale 0 is the beginning, scale 1 of all differences the average; DARE and TIES that keep all are no others."""
    base, parts = drawn(6, 5, seed=9), [drawn(6, 5, seed=seed) for seed in range(K)]
    average = np.tensordot(WEIGHTS, np.stack(parts), 1)
    for name in methods.OF_TASK_VECTORS:
        np.testing.assert_array_equal(merge_tensors(parts, WEIGHTS, Method(name, scale=0.0), base), base)
    for name in ("task-arithmetic", "dare"):
        merged = merge_tensors(parts, WEIGHTS, Method(name, density=1.0), base)
        np.testing.assert_allclose(merged, average, atol=1e-6)
    np.testing.assert_allclose(merge_tensors(parts, WEIGHTS), average, atol=1e-6)
    np.testing.assert_allclose(
        merge_tensors(parts, np.eye(K)[1], Method("ties", density=1.0), base), parts[1], atol=1e-6
    )
    np.testing.assert_array_equal(merge_tensors(parts, np.eye(K)[1]), parts[1])


@pytest.mark.parametrize("shape", [(), (3,), (4, 5), (2, 3, 4)])
def test_any_shape_and_any_cut(shape, monkeypatch):
    """Would catch rows that are left out, or weights that meet another tensor."""
    parts, base = [drawn(*shape, seed=seed) for seed in range(K)], drawn(*shape, seed=9)
    whole = [merge_tensors(parts, WEIGHTS, Method(name), base) for name in methods.OF_TASK_VECTORS]
    monkeypatch.setattr(methods, "_PIECE", 3)
    for name, expected in zip(methods.OF_TASK_VECTORS, whole, strict=True):
        np.testing.assert_allclose(merge_tensors(parts, WEIGHTS, Method(name), base), expected, rtol=1e-5)
    np.testing.assert_allclose(add_weighted(parts, WEIGHTS), np.tensordot(WEIGHTS, np.stack(parts), 1), rtol=1e-4)
    changed = add_weighted(parts, [0.1, 0, -0.1], np.tensordot(WEIGHTS, np.stack(parts), 1).astype(np.float32))
    np.testing.assert_allclose(changed, np.tensordot(WEIGHTS + np.array([0.1, 0, -0.1]), np.stack(parts), 1), rtol=1e-4)


def test_numbers_beyond_a_type_are_refused():
    """Would catch infinities in half precision, of a scale that single precision still holds."""
    parts = [np.full(3, 6e4, np.float16)] * 2
    with pytest.raises(FloatingPointError):
        merge_tensors(parts, np.array([0.5, 0.5]), Method("task-arithmetic", scale=2.0), np.zeros(3, np.float16))


@pytest.mark.parametrize(
    ("method", "has_base", "error", "said"),
    [
        (Method("avarage"), False, UnknownNameError, "Did you mean 'average'"),
        (Method("ties"), False, InvalidParamsError, "which is not given.*choose average or aligned"),
        (Method("average"), True, InvalidParamsError, "uses no base"),
        (Method("dare", density=0.0), True, InvalidParamsError, r"density=0 must be in \(0, 1\]"),
        (Method("dare", density=float("nan")), True, InvalidParamsError, "density=nan"),
        (Method("dare", scale=float("inf")), True, InvalidParamsError, "scale=inf must be finite"),
    ],
)
def test_methods_that_do_not_fit_say_why(method, has_base, error, said):
    base = {"w": np.zeros((2, 2))} if has_base else None
    with pytest.raises(error, match=said):
        merging.merge({"w": np.ones((2, 2, 2))}, np.array([0.5, 0.5]), method, base)


NAMES = "model.layers.0.block_sparse_moe.experts.{}.{}.weight"


@pytest.mark.parametrize("of_base", ["dense", "one expert"])
def test_a_base_is_a_dense_model_or_has_one_expert(of_base, tmp_path):
    """Against the formula in NumPy."""
    shapes = {"w1": (F, D), "w2": (D, F), "w3": (F, D)}
    tensors = {NAMES.format(k, name): drawn(*shape, seed=k) for k in range(K) for name, shape in shapes.items()}
    begun = {name: drawn(*shape, seed=7) for name, shape in shapes.items()}
    dense = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
    named = {
        "dense": {f"model.layers.0.mlp.{dense[name]}.weight": part for name, part in begun.items()},
        "one expert": {NAMES.format(0, name): part for name, part in begun.items()},
    }
    save_file(tensors, tmp_path / "model.safetensors")
    save_file(named[of_base], tmp_path / "base.safetensors")
    method = Method("task-arithmetic", scale=1.5)
    merge_checkpoint(
        tmp_path / "model.safetensors", None, WEIGHTS, tmp_path / "out.safetensors", method=method,
        base=tmp_path / "base.safetensors",
    )  # fmt: skip
    after = load_file(tmp_path / "out.safetensors")
    for name in shapes:
        average = np.tensordot(WEIGHTS, np.stack([tensors[NAMES.format(k, name)] for k in range(K)]), 1)
        np.testing.assert_allclose(after[NAMES.format(0, name)], 1.5 * average - 0.5 * begun[name], atol=1e-5)
    for other, said in (
        ({"other": drawn(2)}, "nor model.layers.0.mlp.*could have begun"),
        (tensors, "Merge these first"),
    ):
        save_file(other, tmp_path / "base.safetensors")
        with pytest.raises(InvalidCheckpointError, match=said):
            merge_checkpoint(
                tmp_path / "model.safetensors", None, WEIGHTS, tmp_path / "o.safetensors", method=method,
                base=tmp_path / "base.safetensors",
            )  # fmt: skip


@pytest.mark.parametrize("is_stacked", [True, False])
def test_a_checkpoint_is_aligned(is_stacked, tmp_path):
    """Would catch orders of another layer or tensor: two layers of copies in other orders keep their outputs."""
    layout = "one after the other" if is_stacked else "linear"
    tensors, layers = {}, {}
    for layer in range(2):
        layers[layer] = permuted(layout, seed=20 * layer)
        for name in layers[layer][0]:
            stacked = np.stack([expert[name] for expert in layers[layer]])
            if is_stacked:
                tensors[f"layers.{layer}.experts.{name}"] = np.ascontiguousarray(stacked)
            else:
                tensors |= {f"layers.{layer}.experts.{k}.{name}": np.ascontiguousarray(stacked[k]) for k in range(K)}
    save_file(tensors, tmp_path / "model.safetensors")
    merge_checkpoint(
        tmp_path / "model.safetensors", None, WEIGHTS, tmp_path / "out.safetensors", method=Method("aligned")
    )
    after = load_file(tmp_path / "out.safetensors")
    outputs, inputs = LAYOUTS[layout][1], drawn(11, D, seed=9)
    for layer, experts in layers.items():
        prefix = f"layers.{layer}.experts." if is_stacked else f"layers.{layer}.experts.0."
        one = {name: after[prefix + name].reshape(experts[0][name].shape) for name in experts[0]}
        np.testing.assert_allclose(outputs(inputs, one), outputs(inputs, experts[0]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("setting", [{"scale": 2.0}, {"density": 0.5}])
def test_a_setting_of_other_methods_is_refused(setting):
    """Would catch a scale or a density that changes nothing, without a word."""
    with pytest.raises(InvalidParamsError, match=f"{next(iter(setting))}=.*leave the"):
        check_method(Method("average", **setting), has_base=False)
