"""Components of every report page: the document, its text and tables, and formatting of numbers."""
