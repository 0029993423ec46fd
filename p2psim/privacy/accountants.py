from typing import Literal
AccountantName = Literal["basic"]
