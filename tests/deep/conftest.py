"""What runs commands, for those of networks too."""

from ..cli.conftest import inside as inside
from ..cli.conftest import ran as ran
from ..cli.conftest import refused as refused
