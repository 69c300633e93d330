"""Image captions: a CNN and an LSTM are trained on Spark and generate captions word by word."""
