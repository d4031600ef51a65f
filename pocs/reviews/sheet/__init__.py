"""The one-page review sheet (O1): its content, its chart, and the PDF."""
