"""What all tests share: property tests draw the same examples in every run, however slow the machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "p2psim", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("p2psim")
