"""What `moe-theory bound` does, given its options."""

import math
import re
from typing import Any

from moe_theory.commands import open_console, print_json
from moe_theory.core.errors import InvalidParamsError, shortened
from moe_theory.generalization import calculator
from moe_theory.report import bounds

_OVER_ROOT = re.compile(r"(.+?)\s*/\s*sqrt\(m\)")


def run_bound(options: Any) -> None:
    """Calculate all bounds, draw them where a picture is asked for, and print them."""
    setting = setting_of(options)
    found = calculator.calculate(setting)
    console = open_console(to_stderr=options.json)
    if options.picture is not None:
        bounds.draw(setting, found, options.picture)
    if options.json:
        print_json(bounds.to_json(setting, found))
    else:
        console.print(bounds.shown(setting, found), highlight=False)
    if options.picture is not None:
        console.print(f"picture: {options.picture}", highlight=False, soft_wrap=True, markup=False)


def setting_of(options: Any) -> calculator.Setting:
    """The setting that the options describe. Raises: as `calculator.Setting`."""
    samples = count_of("samples", options.samples)
    return calculator.Setting(
        num_experts=count_of("experts", options.experts),
        num_active=count_of("active", options.active),
        num_samples=samples,
        num_features=count_of("features", options.features),
        expert_norm=options.expert_norm,
        router_norm=options.router_norm,
        feature_norm=options.feature_norm,
        lipschitz=options.lipschitz,
        delta=options.delta,
        threshold=options.threshold,
        router=options.router,
        dimension=options.dimension,
        natarajan=options.natarajan,
        rademacher=None if options.rademacher is None else rademacher_of(options.rademacher, samples),
        is_uniform=options.rademacher is not None and _OVER_ROOT.fullmatch(options.rademacher.strip()) is not None,
        expert_widths=options.expert_widths,
        router_widths=options.router_widths,
        operator_norms=options.operator_norms,
        row_norms=options.row_norms,
    )


def count_of(name: str, text: str) -> int:
    """A whole number, also written as 60_000 or 1e6. Raises: InvalidParamsError for anything else."""
    try:
        number = float(text)
        if math.isfinite(number) and number == int(number):
            return int(number) if "e" in text.lower() or "." in text else int(text)
    except ValueError:
        pass
    raise InvalidParamsError(f"{name}={shortened(text)} must be a whole number, such as 8 or 1e6. Change {name}.")


def rademacher_of(text: str, num_samples: int) -> float:
    """R_m(H) at m, from a number, which it is, or a multiple of 1/sqrt(m). Raises: InvalidParamsError for neither."""
    over_root = _OVER_ROOT.fullmatch(text.strip())
    try:
        number = float(over_root[1] if over_root else text)
    except ValueError:
        raise InvalidParamsError(
            f"rademacher={shortened(text)} must be a number, R_m(H) at this m, or a multiple such as '2.5/sqrt(m)'. "
            "Change rademacher."
        ) from None
    return number / math.sqrt(max(num_samples, 1)) if over_root else number
