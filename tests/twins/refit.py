"""Refit by its definition: a list of all rows, and a model fitted anew on the last ones when that is due."""


def refit(X, y, make, every, window, min_rows, columns=None):
    """Return what is predicted for each row before it is learned; None before the first fit.

    `columns[i]` are those selected when row i is learned.
    """
    predicted, model, used, fitted_at, n_fitted = [], None, None, 0, 0
    for i in range(len(y)):
        predicted.append(None if model is None else model.predict(X[i : i + 1][:, used])[0])
        n_seen = i + 1
        is_due = n_seen == min_rows if model is None else n_seen - fitted_at == min(every, n_fitted)
        if is_due:
            used = list(range(X.shape[1])) if columns is None else columns[i]
            first = max(0, n_seen - window)
            model = make().fit(X[first:n_seen][:, used], y[first:n_seen])
            fitted_at, n_fitted = n_seen, n_seen - first
    return predicted
