"""The node's side: its supervisor, and the process that runs the user's main function."""
