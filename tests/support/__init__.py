"""What several rooms' tests share: servers and models that stand in, runs that are made once, and pages to read."""
