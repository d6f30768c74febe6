"""What files say of the classifier that bounds are for: a published model's, or those of one that was trained here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moe_theory.core.errors import InvalidParamsError
from moe_theory.generalization import certificate
from moe_theory.generalization.published import published, stored

Found = tuple[dict[str, Any], list[str]]  # fields of a `calculator.Setting`, and notes


def fields(
    config: Path | None,
    checkpoint: Path | None,
    num_errors: int | None,
    losses: Path | None,
    given: Mapping[str, Any],
    options: Mapping[str, str],
) -> Found:
    """Fields that files give; none without a file.

    Args:
        given: the fields that are given beside them; of a trained model its number of samples may be.
        options: what messages call these.
    Raises: InvalidParamsError for files that cannot be read, that say too little, or what is given too.
    """
    if num_errors is not None or losses is not None:
        return _trained(checkpoint, config, num_errors, losses, given)
    return _published(config, checkpoint, given, options)


def _published(
    config: Path | None, checkpoint: Path | None, given: Mapping[str, Any], options: Mapping[str, str]
) -> Found:
    """What the files of a published model say."""
    if config is None and checkpoint is not None:
        folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
        config = folder / "config.json" if (folder / "config.json").is_file() else None
    if config is None and checkpoint is None:
        return {}, []
    found: dict[str, Any] = {}
    notes: list[str] = []
    is_counted = checkpoint is None and "num_weights" not in given
    if config is not None:
        model = published(config, is_counted, given.get("bits"))
        found = {"num_experts": model.num_experts, "num_active": model.num_active, "num_features": model.num_features}
        if clash := [options[name] for name in found if name in given]:
            raise InvalidParamsError(f"{clash[0]} is what --config {config} says. Drop one of both.")
        notes += [f"{config} is of the family {model.family}.", *model.notes]
        if is_counted:
            found |= _sizes(model.num_weights, model.num_bits)
        elif checkpoint is None:
            if model.dtype_bits is None:
                raise InvalidParamsError(f"{config} has a quantization_config: give --bits beside --weights.")
            found["bits"] = model.dtype_bits
    if checkpoint is not None:
        if clash := [options[name] for name in ("num_weights", "bits") if name in given]:
            raise InvalidParamsError(f"{clash[0]} is what --checkpoint {checkpoint} says. Drop one of both.")
        size = stored(checkpoint)
        count = size.num_weights if size.num_weights is not None or config is None else _counted(config)
        if count is None:
            raise InvalidParamsError(
                f"{checkpoint} has several weights packed into a number, so that headers do not count them, and its "
                "bits alone are known. Add --config of a family that is known."
            )
        found |= _sizes(count, size.num_bits)
        notes.append(size.note)
    notes.append("Tokens of a text are not independent samples: m counts independent ones, such as documents.")
    return found, notes


def _sizes(num_weights: int, num_bits: int) -> dict[str, Any]:
    """Fields for weights of as many bits each, or on average."""
    each, rest = divmod(num_bits, num_weights)
    return {"num_weights": num_weights, **({"num_bits": num_bits} if rest or not each else {"bits": each})}


def _counted(config: Path) -> int | None:
    try:
        return published(config).num_weights
    except InvalidParamsError:
        return None


def _trained(
    checkpoint: Path | None,
    config: Path | None,
    num_errors: int | None,
    losses: Path | None,
    given: Mapping[str, Any],
) -> Found:
    """The code of a trained model's weights, and its training error."""
    if checkpoint is None or config is not None or (num_errors is not None and losses is not None):
        raise InvalidParamsError(
            "--errors and --losses are of the model in --checkpoint, without --config, and one of both is enough. "
            "Change these."
        )
    if losses is not None:
        training_error, num_samples = certificate.mean_loss(losses)
        if given.get("num_samples", num_samples) != num_samples:
            raise InvalidParamsError(
                f"--losses {losses} has {num_samples} numbers, but --samples is {given['num_samples']}: there is one "
                "loss a sample. Drop --samples."
            )
    elif "num_samples" not in given:
        raise InvalidParamsError("--errors needs --samples, the number of samples that they are among. Give it.")
    else:
        num_samples = given["num_samples"]
        if not 0 <= (num_errors or 0) <= num_samples:
            raise InvalidParamsError(f"--errors {num_errors} must be from 0 to --samples {num_samples}. Change one.")
        training_error = (num_errors or 0) / num_samples
    model = certificate.code_of(checkpoint)
    found = {"code_bits": model.num_bits, "training_error": training_error, "num_samples": num_samples}
    if not given.keys() - {"num_samples", "delta", "threshold", "num_choices", "bits"}:
        found |= _sizes(model.num_weights, given["bits"] * model.num_weights if "bits" in given else model.stored_bits)
    return found, [
        f"{checkpoint}: {model.num_weights:,} weights, {model.stored_bits:,} bits as stored and {model.num_bits:,} as "
        f"coded; training error {training_error:.4g} of {num_samples:,} samples."
    ]
