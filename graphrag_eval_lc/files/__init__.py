"""Files: read with errors that name the line, and written so that nothing is lost."""
