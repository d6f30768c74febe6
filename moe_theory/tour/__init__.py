"""The guided tour of the package: `script.py` is the example, `steps.py` runs it step by step."""
