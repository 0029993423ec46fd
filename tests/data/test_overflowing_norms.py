"""A row whose norm is beyond what floats hold is refused: divided by it, the row would become 0."""

import numpy as np
import pytest

from p2psim.core.errors import MeaningError
from p2psim.data.scaling import ScaleX, l1_norms, scale_x


@pytest.mark.parametrize("at", [1.0, "each-record"])
def test_refused(at: object) -> None:
    rows = np.array([[1e308, -1e308], [1.0, 2.0]])
    with pytest.raises(MeaningError, match="numbers overflow: rescale the data"):
        scale_x(ScaleX.model_validate({"at": at}), rows, np.empty((0, 2)), True)


def test_the_largest_norm_that_floats_hold_is_kept() -> None:
    np.testing.assert_array_equal(l1_norms(np.array([[8e307, -8e307], [0.0, 0.0]])), [1.6e308, 0.0])
