"""The learners by which published values of DCI and SAP were taken: gradient boosting, and a linear support vector.

Settings are those of disentanglement_lib [1]_, whose study has most published values: scikit-learn's
``GradientBoostingClassifier()`` for each factor, and for each pair of a code and a factor
``LinearSVC(C=0.01, class_weight="balanced")``. There both are fitted to 10,000 images and tested on 5,000 others.

References
----------
.. [1] F. Locatello et al., "Challenging common assumptions in the unsupervised learning of disentangled
   representations", ICML 2019 (arXiv 1811.12359), and its published code.

"""

import warnings

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Reals
from setsup.errors import imported

__all__ = ["fit_boosting", "fit_svm"]


_STATE = 0  # of random numbers: scikit-learn's trees break ties between codes with them


def fit_boosting(codes: Reals, levels: Codes, test: npt.NDArray[np.bool_]) -> tuple[Reals, float]:
    """Importances of codes (n, d) for the levels (n,) of a factor, of sum 1 or 0; and the accuracy on test rows.

    Examples
    --------
    >>> factors = np.tile(np.indices((2, 2)).reshape(2, -1), 10).T
    >>> importance, accuracy = fit_boosting(factors * 1.0, factors[:, 0], np.arange(40) % 10 == 0)
    >>> importance.round(3), accuracy
    (array([1., 0.]), 1.0)

    """
    model = imported("sklearn.ensemble", "train").GradientBoostingClassifier(random_state=_STATE)
    model.fit(codes[~test], levels[~test])
    return np.asarray(model.feature_importances_), float((model.predict(codes[test]) == levels[test]).mean())


def fit_svm(code: Reals, levels: Codes, test: npt.NDArray[np.bool_]) -> float:
    """Accuracy on test rows of levels (n,), as a linear support vector tells them from one code (n,)."""
    # of the two equal problems the one whose solution draws no random numbers, and which scikit-learn chooses here
    model = imported("sklearn.svm", "train").LinearSVC(C=0.01, class_weight="balanced", dual=False, random_state=_STATE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", imported("sklearn.exceptions", "train").ConvergenceWarning)
        model.fit(code[~test, None], levels[~test])
    return float((model.predict(code[test, None]) == levels[test]).mean())
