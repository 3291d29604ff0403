"""Decisions over HTTP: an answer means it is on disk, and anyone can recompute it (docs/contract.md#the-service).

Rooms, each of which imports only those above it (http and dashboard each other):

    stores     where rows are kept: what a row is, the statements of both databases, SQLite's and PostgreSQL's side
    wire       what is asked and answered, every error by its code, and the description of both for other programs
    core       decisions and rewards: streams, folds, groups that are written together, keys, all of it again (verify)
    replica    what is different where several servers share a PostgreSQL database
    http       the application: routes, limits of requests, hosts and origins, logs, metrics, the server that runs it
    dashboard  pages for people: what streams do now, and why a decision was made
    operate    what an operator does to a database: the commands, keys, backups, export

`client` is the client in Python, which needs none of them.
"""
