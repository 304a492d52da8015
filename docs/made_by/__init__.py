"""Generates the reference pages, llms.txt and the pictures: `make reference`, `make pictures`."""
