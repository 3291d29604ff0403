"""Internal modules, with no public names: checks of values, files, containers, progress, compiling."""
