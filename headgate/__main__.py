"""``python -m headgate``: the command line of a checkout."""

import sys

from headgate.cli.main import main

sys.exit(main())
