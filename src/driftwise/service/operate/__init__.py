"""What an operator does to a database: the commands, keys, backups, export."""
