"""Files by URI, folders on this host, TFRecord files."""
