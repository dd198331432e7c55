import pytest
from world import build_recorder


@pytest.fixture(scope="session")
def recorder(tmp_path_factory):
    return build_recorder(tmp_path_factory.mktemp("recorder"))
