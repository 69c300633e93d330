"""What the driver does with metrics and output of nodes."""
