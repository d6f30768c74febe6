"""Fig. 2, on fine-tuning a model that is not to be had here."""

from moe_theory.verify.statement import statement

statement(
    "figure-2",
    where="Fig. 2 and Section V-B",
    says="Fine-tuning a T5's normalization layers under Tanbr's merging reaches a lower loss, sooner, at a tenth more "
    "memory than token routing.",
    untestable="It is about fine-tuning a pre-trained post-norm T5 of 1e9 parameters on GLUE, which is not to be had "
    "here; a pre-norm network needs no such phase, as the paper says.",
)
