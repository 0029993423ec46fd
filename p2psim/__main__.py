"""``python -m p2psim``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python looks for modules in the current folder first, where files of others may lie; the command does not.
    if not sys.flags.safe_path and Path(sys.path[0]) not in Path(__file__).parents:
        del sys.path[0]

    from p2psim.cli.main import main

    sys.exit(main())
