"""Where rows are kept: what a row is, the statements of both databases, SQLite's file, PostgreSQL's connection."""
