"""The TensorBoard plugin REGAL: what programs and the command line write, and the tab that shows it."""
