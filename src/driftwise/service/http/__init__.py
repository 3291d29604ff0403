"""The application: routes, limits on requests, hosts and origins, logs, metrics, and the server that runs it."""
