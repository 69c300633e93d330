"""CaffeOnSpark's tools as its Python programs import them: aliases."""
