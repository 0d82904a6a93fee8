"""Reports as typed tables, and their renderings: text, CSV, LaTeX, figures and the page."""
