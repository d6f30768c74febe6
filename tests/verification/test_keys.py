"""Keys of all claims' samples: catches samples thrown away for a word, and samples kept of code that has changed."""

import dataclasses

import pytest

from moe_theory.core.errors import InvalidValueError
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys


def test_a_value_without_a_key_is_an_error_of_its_claim():
    """Would catch samples that are saved under a key by which they are never found."""
    (claim,) = registry.select_claims(["continual.lemma-4"])
    (reading, *_) = registry.select_readings("continual", None)
    with open(__file__) as file:
        reading_a_file = dataclasses.replace(claim, observe=lambda runs: file)
        with pytest.raises(InvalidValueError) as refused:
            Keys().of(reading_a_file, reading, 0)
    assert claim.id in str(refused.value)
