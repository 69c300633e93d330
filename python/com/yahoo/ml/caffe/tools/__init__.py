"""CaffeOnSpark's tools for notebooks; those that convert data sets are not there yet."""
