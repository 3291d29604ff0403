"""What the package uses and its users do not: checks of values, files, containers, progress, compiling."""
