"""What exists only to repeat the paper: its tables and figures as runnable definitions."""
