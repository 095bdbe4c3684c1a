"""``python -m dssgnn``."""

from dssgnn.cli import main

if __name__ == "__main__":
    main()
