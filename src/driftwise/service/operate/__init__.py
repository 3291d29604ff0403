"""The operator's commands on a database: keys, backups, export, import."""
