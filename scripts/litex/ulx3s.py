"""As ``python -m scripts.litex.boards ulx3s``."""

import sys

from scripts.litex.boards.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["ulx3s", *sys.argv[1:]]))
