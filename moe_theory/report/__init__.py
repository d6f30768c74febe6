"""What people look at: tables, files of verdicts, figures."""
