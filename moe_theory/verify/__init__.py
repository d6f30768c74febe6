"""Claims and verdicts. The module itself is callable: `moe_theory.verify("continual.*")`."""

import sys
from types import ModuleType
from typing import Any

from moe_theory.verify.claim import KINDS as KINDS
from moe_theory.verify.claim import Claim as Claim
from moe_theory.verify.claim import Experiment as Experiment
from moe_theory.verify.registry import all_claims as all_claims
from moe_theory.verify.registry import select_claims as select_claims
from moe_theory.verify.session import verify as verify
from moe_theory.verify.verdict import Status as Status
from moe_theory.verify.verdict import Verdict as Verdict
from moe_theory.verify.verdict import Verdicts as Verdicts


class _CallableModule(ModuleType):
    """The package's name is also the public function's, and importing a package binds its name to the module."""

    def __call__(self, *args: Any, **kwargs: Any) -> Verdicts:
        return verify(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
