"""What every figure of a report is made of: charts as inline SVG, pictures, lines thinned to what can be seen."""
