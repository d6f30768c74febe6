import types

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
from .verification import Claim as Claim
from .verification import Experiment as Experiment
from .verification import Status as Status
from .verification import Verdict as Verdict
from .verification.catalog import statements as statements
from .verification.challenge import challenge as challenge
from .verification.explore import explore as explore
from .verification.registry import claims as claims
from .verification.session import verify as verify
from .verification.statement import statement as statement

__version__: str

def __getattr__(name: str) -> types.ModuleType: ...  # an installed paper
