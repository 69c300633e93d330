"""What runs in Spark's tasks and in reader processes: starts a node, delivers rows to one; may use
node's modules."""
