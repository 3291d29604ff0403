"""The application: routes, limits of requests, hosts and origins, logs, metrics, and the server that runs it."""
