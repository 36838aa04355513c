"""The page of a run: its queries, the questions with their sentences, plots and tables, and how the page is drawn."""
