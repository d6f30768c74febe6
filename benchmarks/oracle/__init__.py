"""An oracle of numbers: what this package computes, kept to the last digit and compared between two commits.

`python -m benchmarks.oracle --fast --out FOLDER` collects, `--compare A B` compares two folders, and
`--against COMMIT` does both for a commit and the working tree. `parts.py` lists what is collected.
"""
