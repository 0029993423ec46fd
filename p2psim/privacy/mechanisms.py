from typing import Annotated, Literal
from pydantic import BeforeValidator
Mechanism = Literal["none", "laplace"]
