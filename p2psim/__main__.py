"""``python -m p2psim``."""

import sys

from p2psim.cli import main

if __name__ == "__main__":
    sys.exit(main())
