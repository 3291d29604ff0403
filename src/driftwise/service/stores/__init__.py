"""Storage: the types of rows, the statements of both databases, SQLite's file and PostgreSQL's connection."""
