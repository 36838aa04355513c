"""The page of a run: its queries, the twenty questions with sentence, plot and table, and how it is drawn."""
