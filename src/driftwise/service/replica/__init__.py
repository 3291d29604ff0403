"""The parts that differ if several servers share a PostgreSQL database: groups, peers, and the watch of changes."""
