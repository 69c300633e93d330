"""What runs in Spark's tasks: starts a node, delivers rows to one; may use node's modules."""
