"""The guided tour: `script.py`, which is one notebook, taken apart into steps and run one by one."""
