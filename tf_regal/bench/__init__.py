"""The project's own speed: the simulator, the search and the hook. Imports TensorFlow where it is measured only."""
