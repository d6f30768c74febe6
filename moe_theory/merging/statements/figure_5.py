"""Fig. 5: Tanbr's lead after learning online, in drifting mixes, on digits."""

from moe_theory.merging.statements.figure_4 import IN_THE_PAPER, claim_gain, claim_leads
from moe_theory.merging.statements.setting import statement

LEAST_GAIN = 0.05  # difference of accuracy

FIGURE_5 = statement("figure-5", module=__name__)
claim_leads(FIGURE_5, "figure-5", "ahead", "dynamic")
claim_gain(FIGURE_5, "figure-5.gain", "dynamic", rivals=IN_THE_PAPER, gain=LEAST_GAIN, role="literal")
claim_gain(FIGURE_5, "figure-5.agreeing", "agreeing", rivals=IN_THE_PAPER, gain=0, role="literal")
