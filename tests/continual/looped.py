"""Many cheap cases in one test, which lists every failure."""


def looped(names, values):
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
