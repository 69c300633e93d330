"""The driver's side: starts, feeds, watches and restarts nodes; may use all other sides."""
