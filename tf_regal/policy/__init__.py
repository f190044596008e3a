"""The policy: a graph neural network that proposes where the genetic search looks. `inference` uses one, `train` makes one."""
