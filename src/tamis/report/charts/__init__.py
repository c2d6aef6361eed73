"""Charts: one description, drawn as SVG on a page and with matplotlib in a figure."""
