"""Files: reads them with errors that name the line, and writes them so that nothing is lost."""
