"""What holds for all tests."""

import os
from pathlib import Path

# Compiled programs are kept between tests, workers and runs of the suite: compiling is much of its time. A test's own
# processes inherit this. Set before anything imports JAX.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "programs"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
