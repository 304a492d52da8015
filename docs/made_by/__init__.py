"""What makes the pages of the reference, llms.txt and the pictures: `make reference`, `make pictures`."""
