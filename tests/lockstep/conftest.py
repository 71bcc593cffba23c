"""Options of the lockstep tests, for example ``pytest tests/lockstep --lockstep-count 500``."""

from __future__ import annotations

import pytest

from tb.lockstep.campaign import DEFAULT_COUNT, DEFAULT_SEED


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lockstep", "random programs in lockstep")
    group.addoption(
        "--lockstep-seed", type=int, default=DEFAULT_SEED, help="seed of the first random program (default %(default)s)"
    )
    group.addoption(
        "--lockstep-count", type=int, default=DEFAULT_COUNT, help="random programs to run (default %(default)s)"
    )


# In a run that does not name this folder, the options are not registered in time: hence the defaults here.
@pytest.fixture(scope="session")
def lockstep_seed(request: pytest.FixtureRequest) -> int:
    """Seed of the first random program."""
    return request.config.getoption("--lockstep-seed", default=DEFAULT_SEED)


@pytest.fixture(scope="session")
def lockstep_count(request: pytest.FixtureRequest) -> int:
    """Number of random programs."""
    return request.config.getoption("--lockstep-count", default=DEFAULT_COUNT)
