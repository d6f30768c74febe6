"""The guided tour of the package: `script.py` is for users, `steps.py` runs it, `page.py` shows what it gave."""
