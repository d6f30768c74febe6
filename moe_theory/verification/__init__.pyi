from .claim import Claim as Claim
from .claim import Experiment as Experiment
from .registry import all_claims as all_claims
from .registry import select_claims as select_claims
from .session import verify as verify
from .verdict import Status as Status
from .verdict import Verdict as Verdict
from .verdict import Verdicts as Verdicts
