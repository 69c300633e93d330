"""The package that CaffeOnSpark's Python programs import: an alias of hearth.caffeonspark.

`com`, `com.yahoo` and `com.yahoo.ml` have no __init__.py, because other packages may share these
names.
"""
