"""Models against finite differences, their definitions, and their compiled gradients."""

import numpy as np
import pytest
from registered import registered

from p2psim.learning.models import MLP, Linear, Softmax
from p2psim.learning.models.kernels import add_gradient

FEATURES, CLASSES = 3, 4
MODELS = [
    *(Linear().with_loss(loss) for loss in registered("loss")),
    *(model for model in registered("model") if not model.uses_loss),
    MLP(layers=[5]),
    MLP(layers=[6, 2, 5], activation="tanh"),
]


def name_of(model):
    return f"{model.kind}-{model.loss.kind}" if model.uses_loss else repr(model)


EACH = pytest.mark.parametrize("model", MODELS, ids=name_of)
COMPILED = pytest.mark.parametrize(
    "model", [model for model in MODELS if model.for_kernel(FEATURES, CLASSES) is not None], ids=name_of
)
LAYERED = pytest.mark.parametrize("model", [m for m in MODELS if m.labels == "classes"], ids=name_of)


def case(model, records=21, seed=0):
    """Parameters and records: no gradient among them is 0, and no value near the corner of a rectifier or loss."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((records, FEATURES))
    y = random.standard_normal(records)
    if model.labels == "signs":
        y = np.sign(y)
    elif model.labels == "classes":
        y = random.integers(0, CLASSES, records).astype(float)
    return random.standard_normal(model.size(FEATURES, CLASSES)), X, y


@EACH
def test_gradients_are_those_of_the_losses(model):
    """Central differences of step 1e-6."""
    theta, X, y = case(model)
    gradients = model.gradients(theta, X, y)
    assert gradients.shape == (len(y), theta.size)
    for a in range(theta.size):
        step = np.zeros(theta.size)
        step[a] = 1e-6
        quotients = (model.losses(theta + step, X, y) - model.losses(theta - step, X, y)) / 2e-6
        np.testing.assert_allclose(gradients[:, a], quotients, rtol=1e-6, atol=2e-8)


@EACH
def test_several_parameters_at_once_are_each_of_them(model):
    _, X, y = case(model)
    thetas = np.random.default_rng(1).standard_normal((3, model.size(FEATURES, CLASSES)))
    outputs = np.array([model.outputs(theta, X) for theta in thetas])
    np.testing.assert_allclose(model.outputs_of(thetas, X), outputs, rtol=1e-12, atol=1e-13)
    losses = [model.losses(theta, X, y) for theta in thetas]
    if model.labels == "classes":  # by the definition
        own = np.take_along_axis(outputs, y.astype(int)[None, :, None].repeat(3, 0), axis=2)[:, :, 0]
        losses = np.log(np.exp(outputs).sum(axis=2)) - own
    np.testing.assert_allclose(model.losses_of(thetas, X, y), losses, rtol=1e-12, atol=1e-13)


def clipped(gradients, order, clip):
    """Each gradient, scaled down where it is longer."""
    sizes = [abs(g).sum() if order == 1 else (g @ g) ** 0.5 for g in gradients]
    pairs = zip(gradients, sizes, strict=True)
    return [g * clip / size if size > clip else g for g, size in pairs], max(sizes)


@COMPILED
@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 8, 9, 16, 21])
def test_compiled_sums_are_those_of_the_gradients(model, count):
    theta, X, y = case(model)
    rows = np.random.default_rng(1).permutation(21)
    compiled = model.for_kernel(FEATURES, CLASSES)
    gradients = model.gradients(theta, X[rows[:count]], y[rows[:count]])
    out = np.full(theta.size, 0.5)
    assert add_gradient(theta, X, y, rows, count, np.inf, 0, compiled, out) == 0.0
    np.testing.assert_allclose(out, 0.5 + gradients.sum(axis=0), rtol=1e-12, atol=1e-13)


@EACH
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("share", [0.0, 0.5, 2.0, np.inf])
def test_gradients_are_clipped_one_by_one(model, order, share):
    """``share`` of the median norm: all, most, few, or none are longer."""
    theta, X, y = case(model, seed=2)
    gradients = model.gradients(theta, X, y)
    clip = share * np.median(np.linalg.norm(gradients, order, axis=1)) or 1e-3
    expected, longest = clipped(gradients, order, clip)
    rows, out = np.arange(len(y)), np.zeros(theta.size)
    compiled = model.for_kernel(FEATURES, CLASSES)
    if compiled is not None:
        assert add_gradient(theta, X, y, rows, len(y), clip, order, compiled, out) == pytest.approx(longest)
        np.testing.assert_allclose(out, np.sum(expected, axis=0), rtol=1e-11, atol=1e-13)

    sums, norms = model.clipped_sums(np.stack([theta, theta]), X, y, [rows, rows[:0]], clip, order)
    np.testing.assert_allclose(sums, [np.sum(expected, axis=0), np.zeros(theta.size)], rtol=1e-11, atol=1e-13)
    assert norms == pytest.approx([longest, 0.0])


@COMPILED
@pytest.mark.parametrize("order", [0, 2])
def test_grouping_of_records_changes_no_bit(model, order):
    theta, X, y = case(model, seed=3)
    compiled, rows = model.for_kernel(FEATURES, CLASSES), np.arange(21)
    together, alone = np.zeros((2, theta.size))
    add_gradient(theta, X, y, rows, 21, 0.8 if order else np.inf, order, compiled, together)
    for row in rows:
        add_gradient(theta, X, y, rows[row:], 1, 0.8 if order else np.inf, order, compiled, alone)
    assert together.tobytes() == alone.tobytes()


@LAYERED
def test_losses_are_cross_entropies(model):
    theta, X, y = case(model)
    scores = model.outputs(theta, X)
    for loss, score, label in zip(model.losses(theta, X, y), scores, y, strict=True):
        assert loss == pytest.approx(-np.log(np.exp(score[int(label)]) / np.exp(score).sum()), rel=1e-12)
    assert (model.predictions(scores) == scores.argmax(axis=1)).all()


@LAYERED
def test_same_shift_of_all_scores_changes_nothing(model):
    """The biases of the last layer are the last parameters."""
    theta, X, y = case(model)
    shifted = theta.copy()
    shifted[-CLASSES:] += 3.0
    np.testing.assert_allclose(model.losses(shifted, X, y), model.losses(theta, X, y), rtol=1e-12)
    np.testing.assert_allclose(model.gradients(shifted, X, y), model.gradients(theta, X, y), atol=1e-13)


@LAYERED
def test_large_scores_do_not_overflow(model):
    theta, X, y = case(model)
    theta[-CLASSES:] = np.array([0.0, 900.0, -900.0, 0.0])
    assert np.isfinite(model.losses(theta, X, y)).all()
    out = np.zeros(theta.size)
    add_gradient(theta, X, y, np.arange(21), 21, np.inf, 0, model.for_kernel(FEATURES, CLASSES), out)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out, model.gradients(theta, X, y).sum(axis=0), rtol=1e-12, atol=1e-12)


def test_softmax_of_two_classes_is_the_logistic_model():
    """By the difference of the two scores."""
    from p2psim.learning.losses import Logistic

    theta, X, _ = case(Linear().with_loss(Logistic()))
    signs = np.where(np.arange(21) % 3, 1.0, -1.0)
    logistic = Linear().with_loss(Logistic())
    both = np.concatenate([0 * theta, theta, [0.0, 0.0]]).reshape(-1)
    layered = np.concatenate([both[: 2 * FEATURES], [0.0, 0.0]])
    y = (signs + 1) / 2
    np.testing.assert_allclose(Softmax().losses(layered, X, y), logistic.losses(theta, X, signs), rtol=1e-12)
    gradients = Softmax().gradients(layered, X, y)
    np.testing.assert_allclose(
        gradients[:, FEATURES : 2 * FEATURES], logistic.gradients(theta, X, signs), atol=1e-13
    )
    np.testing.assert_allclose(gradients[:, :FEATURES], -gradients[:, FEATURES : 2 * FEATURES], atol=1e-14)


def test_permuted_classes_permute_gradients():
    theta, X, y = case(Softmax())
    order = np.array([2, 0, 3, 1])
    weights, biases = theta[:-CLASSES].reshape(CLASSES, FEATURES), theta[-CLASSES:]
    permuted = np.concatenate([weights[order].reshape(-1), biases[order]])
    labels = np.argsort(order)[y.astype(int)].astype(float)
    gradients = Softmax().gradients(permuted, X, labels)
    plain = Softmax().gradients(theta, X, y)
    np.testing.assert_allclose(
        gradients[:, :-CLASSES].reshape(-1, CLASSES, FEATURES),
        plain[:, :-CLASSES].reshape(-1, CLASSES, FEATURES)[:, order],
        atol=1e-14,
    )


def test_start():
    """Softmax regression starts from zeros, whose scores are equal; an MLP as PyTorch's layers do."""
    random = np.random.default_rng(0)
    assert not Softmax().start(FEATURES, CLASSES, random).any()
    theta = MLP(layers=[100, 400]).start(16, CLASSES, random)
    assert theta.size == 17 * 100 + 101 * 400 + 401 * 4
    for part, inputs in ((theta[:1700], 16), (theta[1700:42100], 100), (theta[42100:], 400)):
        assert abs(part).max() <= inputs**-0.5
        assert part.std() == pytest.approx((3 * inputs) ** -0.5, rel=0.05)


def test_parameters_of_another_size_are_refused():
    with pytest.raises(ValueError, match="11 parameters fit no number of classes with 3 features"):
        Softmax().outputs(np.zeros(11), np.zeros((2, FEATURES)))
