"""What to change and what to keep: the rows of the table `recommendations`, with which screen and page begin."""
