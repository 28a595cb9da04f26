import pytest

pytest.register_assert_rewrite("tests.contracts.source_contracts")
