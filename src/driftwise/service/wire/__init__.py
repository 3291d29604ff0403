"""The wire: requests and answers, the errors with their codes, and the OpenAPI description."""
