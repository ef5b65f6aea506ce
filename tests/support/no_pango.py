"""In the place of `estimation.formats.pdf` on a machine without Pango: ends as that does there."""

import sys

from estimation.formats.pdf import NO_LIBRARY

if __name__ == "__main__":
    sys.exit(NO_LIBRARY)
