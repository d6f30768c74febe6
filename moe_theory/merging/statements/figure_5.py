"""Fig. 5: Tanbr's lead after learning online, in drifting mixes, on digits."""

from moe_theory.merging.statements.figure_4 import TESTBED_RIVALS, claim_gain, claim_leads
from moe_theory.merging.statements.setting import statement

LEAST_GAIN = 0.05  # difference of accuracy

FIGURE_5 = statement("figure-5", module=__name__)
claim_leads(FIGURE_5, "figure-5", "ahead", "dynamic")
claim_gain(FIGURE_5, "figure-5.gain", "dynamic", rivals=TESTBED_RIVALS, gain=LEAST_GAIN, role="literal")
claim_gain(FIGURE_5, "figure-5.agreeing", "agreeing", rivals=TESTBED_RIVALS, gain=0, role="literal")
