"""Reading and writing files: with the line of each mistake, and so that nothing is lost."""
