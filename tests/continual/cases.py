"""Many cheap cases in one test, and what must be refused, by the type of the error and the argument that it names."""

import pytest

from moe_theory.core.errors import InvalidValueError, MoeTheoryError


def refuse(argument, call, *arguments, kind=InvalidValueError, **options):
    """The call must raise an error of this kind about this argument, in one line, which is returned."""
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    assert caught.value.argument == argument, str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def find_unrefused(cases, call, kind=InvalidValueError):
    """Those of some pairs (argument, value) that the call does not refuse in one line about the argument."""
    failures = []
    for argument, value in cases:
        try:
            call(argument, value)
            failures.append((argument, value, "no error"))
        except MoeTheoryError as error:
            is_meant = type(error) is kind and error.argument == argument
            if not is_meant or "\n" in str(error):
                failures.append((argument, value, repr(error), error.argument))
    return failures


def list_pairs(table):
    """The pairs (argument, value) of a table of the values of each argument."""
    pairs = []
    for argument, values in table.items():
        pairs += [(argument, value) for value in values]
    return pairs


def loop_over(names, values):
    """Like `pytest.mark.parametrize`, but one test of all cases: collecting hundreds of items takes seconds."""

    def decorate(check):
        def test(**outer):
            failures = []
            for value in values:
                case = dict(zip(names, value, strict=True)) if isinstance(names, tuple) else {names: value}
                try:
                    check(**outer, **case)
                except AssertionError as error:
                    failures.append(f"{case}: {error}")
            assert not failures, "\n".join(failures)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate
