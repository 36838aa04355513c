"""What to change and what to keep: the rows of the table `recommendations`. Screen and page begin with them."""
