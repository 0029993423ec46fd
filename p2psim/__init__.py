"""p2psim: discrete-event simulation of machine learning among parties who do not share their data.

What people compose is here, by short names: `Scenario`, `run`, `simulate`, `Network`, and the class of every part that
a scenario can name.
"""

from importlib import import_module

from p2psim.core import __version__

# Modules, and what each gives. Loaded when first used: importing the package must not wait for the libraries that a run
# needs. `__init__.pyi` says the same to type checkers.
_PUBLIC = {
    "core.figures": "Figure",
    "core.registry": "load_parts register",
    "data.features.als": "ALS",
    "data.features.maps": "PCA Feature RandomFourier Standardise Whiten",
    "data.groups": "Groups",
    "data.partitions": "ByColumn Contiguous Dirichlet Equal OfSizes Partition Shards Unbalanced",
    "data.scaling": "Scale ScaleX ScaleY",
    "data.records": "DataSource",
    "data.section": "DataSection Public",
    "data.sources.arrays": "Arrays",
    "data.sources.downloaded": "CreditCard MovieLens100K",
    "data.sources.files": "CSVFile ParquetFile",
    "data.sources.libsvm": "LibSVMFile",
    "data.sources.linear": "LinearClassification LinearRegression",
    "data.sources.packaged": "Hospital Lending LendingSmall Medpar Schools",
    "data.sources.scikit": "BreastCancer Digits",
    "learning.graph.algorithms": "Averaging CoordinateDescent GossipAdmm GossipAlgorithm ModelPropagation PushSum",
    "learning.graph.metrics": "GraphMetric",
    "learning.metrics": "StarMetric",
    "learning.losses": "Hinge Logistic Loss Squared",
    "learning.models": "Model",
    "learning.models.layered": "Linear MLP Softmax",
    "learning.models.torch_model": "TorchModel",
    "learning.section": "LearningSection Regularizer",
    "learning.sgd.algorithms": "DecentralisedSgd FedAsync FedAvg FedBuff GossipLearning GraphTraining StarTraining",
    "learning.sgd.problem": "Answer Heard",
    "learning.step_sizes": "CosineStep InverseStep",
    "learning.star.algorithms": "AsyncStar SynchronousAveraging SynchronousDescent",
    "network.availability": "AllOf Always Availability Bernoulli",
    "network.availability.departures": "Join Leave Remove",
    "network.availability.renewal": "LearnerOutage Outage Renewal",
    "network.availability.schedules": "Diurnal Scripted",
    "network.channels.channel": "Channel",
    "network.channels.draws": "EdgeValue",
    "network.channels.effects": "Blackout ChannelEffect Delivery GilbertElliott",
    "network.compute": "Compute",
    "network.exchanges": "Exchange",
    "network.exchanges.gossip": "Gossip",
    "network.exchanges.request": "Request",
    "network.exchanges.rounds": "Poll Round",
    "network.exchanges.synchronous": "Broadcast Synchronous",
    "network.changes": "ActiveLinks Change",
    "network.metrics": "NetworkMetric",
    "network.section": "Clock Network NetworkSection",
    "network.simulation": "EventStream simulate_events",
    "network.topologies": "ChangingTopology Topology",
    "network.topologies.blocks": "StochasticBlock TwoCluster",
    "network.topologies.changing": "ChangingFile IntervalTopology OnePeerExponential RandomMatching",
    "network.topologies.file": "FromFile FromGraph",
    "network.topologies.moving": "RandomWaypoint Rewired",
    "network.topologies.points": "NearestNeighbours Similarity",
    "network.topologies.random": "ErdosRenyi RandomRegular ScaleFree SmallWorld",
    "network.topologies.regular": "BinaryTree Complete Exponential Grid Hypercube Ring Star StarOfAgents",
    "privacy.accounting.accountant": "Accountant",
    "privacy.allocations": "Allocation Cap Constant Contraction Geometric Horizon Listed Uniform",
    "privacy.mechanisms": "DiscreteLaplace Gaussian Laplace Mechanism NoNoise",
    "privacy.section": "AsPrinted Bounds Clip Declared Empirical PrivacySection",
    "privacy.shares": "Overlap",
    "runs.in_memory": "Simulation simulate",
    "runs.learnt": "LearntModel",
    "runs.result": "Result",
    "runs.runner": "run",
    "scenario.model": "Scenario",
    "scenario.record": "RecordSection Tune",
    "simulation.assembly": "assemble",
}
_HOMES = {name: f"p2psim.{module}" for module, names in _PUBLIC.items() for name in names.split()}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
