"""Reports for readers, which are tables, files of verdicts, and figures."""
