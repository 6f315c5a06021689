"""Speed and memory as ratios against peers and physical limits, measured side by side in one run."""

import os

# One thread a measurement, and before numpy, torch or numba are imported: later they no longer look.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
