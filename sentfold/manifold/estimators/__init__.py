"""The manifold methods as scikit-learn estimators. No stage imports them: scikit-learn takes more than a second."""
