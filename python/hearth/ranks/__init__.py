"""Groups of a framework's processes, connected by the core's collective (docs/collective.md)."""
