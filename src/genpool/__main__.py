"""`python -m genpool`."""

from genpool.cli import main

if __name__ == "__main__":
    main()
