import types

import moe_theory.verify.session as _session

from .core.papers import Paper as Paper
from .core.papers import Reading as Reading
from .core.random import draws as draws
from .core.random import root_key as root_key
from .core.system import System as System
from .core.system import recorded_rounds as recorded_rounds
from .core.system import simulate as simulate
from .core.system import simulate_batch as simulate_batch
from .report.plots import figure as figure
from .runs.compilation import keep_programs as keep_programs
from .sweep.results import Results as Results
from .sweep.results import Sweep as Sweep
from .sweep.vary import vary as vary
from .verify import Claim as Claim
from .verify import Experiment as Experiment
from .verify import Status as Status
from .verify import Verdict as Verdict
from .verify.catalog import statements as statements
from .verify.challenge import challenge as challenge
from .verify.check import check as check
from .verify.explore import explore as explore
from .verify.registry import claims as claims
from .verify.statement import statement as statement

__version__: str

verify = _session.verify  # the package, which can be called

def __getattr__(name: str) -> types.ModuleType: ...  # an installed paper
