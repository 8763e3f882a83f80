"""What is made once for a release."""
