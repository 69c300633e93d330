"""Code of Spark tasks and reader processes: starts nodes and delivers rows to them. May import
`node`'s modules."""
