"""Aliases of CaffeOnSpark's tools, under the package name that its Python programs import."""
