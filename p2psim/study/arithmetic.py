"""What the last digits of results depend on, beside versions: linear algebra's kernels, and vector instructions.

OpenBLAS and MKL choose their kernels by the processor when they are loaded (``OPENBLAS_CORETYPE`` overrides that), and
NumPy its loops for exponentials, logarithms and sums. Kernels differ in the order in which they add, so that results
differ by rounding. The number of threads does not matter: simulations run with one.
"""

from functools import cache


@cache
def arithmetic() -> dict[str, list[str]]:
    """Libraries of linear algebra with version and kernel, and the vector instructions that NumPy uses here."""
    import numpy as np
    import scipy.linalg  # noqa: F401 (its library is its own)
    from threadpoolctl import threadpool_info

    config = np.show_config(mode="dicts")
    assert isinstance(config, dict)
    parts = ("internal_api", "version", "architecture")
    loaded = [one for one in threadpool_info() if one["user_api"] == "blas"]
    blas = {" ".join(str(one[part]) for part in parts if one.get(part)) for one in loaded}
    if not blas:  # one that cannot be asked, such as Accelerate
        built = config["Build Dependencies"]["blas"]
        blas = {f"{built['name']} {built['version']}"}
    return {"blas": sorted(blas), "simd": sorted(config["SIMD Extensions"].get("found", []))}


def differing(other: object) -> str:
    """What is not the same there and here, as a person reads it; empty where all is."""
    here = arithmetic()
    there = other if isinstance(other, dict) else {}
    return "; ".join(
        f"{name} {', '.join(there.get(name, [])) or 'unknown'} there, {', '.join(mine) or 'none'} here"
        for name, mine in here.items()
        if there.get(name) != mine
    )
