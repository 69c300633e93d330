"""Shows a training's metrics in event files, on a live page and in a report."""
