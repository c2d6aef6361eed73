"""What every page of a report is made of: the document, text and tables in it, numbers as people read them."""
