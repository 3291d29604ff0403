"""What is different where several servers share a PostgreSQL database."""
