"""What a training looks like: its figures in event files, on a live page and in a report."""
