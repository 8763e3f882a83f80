"""What tests of several folders share: small models, small runs, commands, the shared data."""
