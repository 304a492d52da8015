"""Reference datasets and recorded responses: how they are read, checked and drafted."""
