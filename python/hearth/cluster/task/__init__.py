"""The side of Spark's tasks and reader processes: starts nodes, delivers rows to them; may use
node's modules."""
