"""The page of a run: its queries, the questions with sentence, plot and table, and how it is drawn."""
