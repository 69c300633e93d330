"""Shows a training: metrics in event files, on a live page and in a report."""
