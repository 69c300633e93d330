"""The node's side: its supervisor, and the process of the user's main function."""
