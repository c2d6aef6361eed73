"""How much one variable tells about another."""
