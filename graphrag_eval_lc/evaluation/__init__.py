"""Tables of answers that a judge compares with reference answers: read, judged, written, set against labels."""
