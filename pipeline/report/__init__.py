"""Reports: tables and figures of one suite."""
