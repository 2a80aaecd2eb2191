"""``python -m tests.campaigns.planted``."""

import sys

from tests.campaigns.planted import main

sys.exit(main())
