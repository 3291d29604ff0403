"""What is different where several servers share a PostgreSQL database: its groups, its peers, and who watches them."""
