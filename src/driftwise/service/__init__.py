"""Decisions over HTTP. An answer means that the decision is on disk and can be recomputed
(docs/contract.md#the-service).

Packages. Each imports only those above it, except that http and dashboard import each other:

    stores     the rows: their layout, the statements of both databases, the code for SQLite and for PostgreSQL
    wire       requests and answers, the errors with their codes, and the OpenAPI description
    core       decisions and rewards: streams, states, group commit, keys, verify
    replica    the parts that differ if several servers share a PostgreSQL database
    http       the application: routes, limits on requests, hosts and origins, logs, metrics, the server
    dashboard  pages for people: what the streams do now, and why a decision was made
    operate    the operator's commands on a database: keys, backups, export, import

`client` is the client in Python. It imports none of these.
"""
