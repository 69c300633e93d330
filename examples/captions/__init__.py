"""Captions of pictures: a CNN and an LSTM learn them on Spark, and say them word by word."""
