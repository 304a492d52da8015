"""What the graph says about a failure. In: queries and a vocabulary. Out: findings and differences in words."""
