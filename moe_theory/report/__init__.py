"""Reports for readers: tables, files of verdicts, figures."""
