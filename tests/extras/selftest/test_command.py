"""`nmt selftest` passes where attention works, and says which one does not."""

import sys

import pytest
import torch
from torch import Tensor

from nmt.config.parts import ATTENTIONS, SCORES
from nmt.extras.selftest import command as selftest
from nmt.model.attention import GeneralScore
from tests.conftest import Run


def test_every_score_and_kind_is_checked() -> None:
    systems = selftest.list_systems()
    models = [selftest.build_config(sections).model for sections in systems.values()]
    assert {model.attention.score for model in models} == {*SCORES}
    assert {model.attention.kind for model in models} == {*ATTENTIONS}
    scores = "dot general concat additive concat_shared linear none"
    variants = "local_m local_p coverage heads input_feeding bahdanau conditional gnmt"
    assert [*systems] == f"{scores} {variants}".split()


def test_the_task_is_to_copy_or_to_reverse() -> None:
    assert selftest.make_target([selftest.COPY, 7, 8, 9]) == [7, 8, 9]
    assert selftest.make_target([selftest.REVERSE, 7, 8, 9]) == [9, 8, 7]


@pytest.mark.slow
def test_an_attention_that_works_learns(nmt: Run) -> None:
    threads = torch.get_num_threads()
    result = nmt("selftest", "--attention", "coverage", "--device", "cpu")
    assert result.status == 0
    header, columns, row = result.out.splitlines()
    assert f"torch {torch.__version__}, on cpu" in header
    assert columns.split()[-3:] == ["steps", "seconds", "tokens/s"]
    assert row.split()[0] == "coverage"
    assert float(row.split()[2].rstrip("%")) >= 95
    assert torch.get_num_threads() == threads


def test_one_that_looks_nowhere_fails(nmt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(self: GeneralScore, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2) * 0

    monkeypatch.setattr(GeneralScore, "forward", blind)
    monkeypatch.setattr(sys.modules["nmt.extras.selftest.command"], "MAX_STEPS", 200)
    result = nmt("selftest", "--attention", "general", "--device", "cpu")
    assert result.status == 1
    assert result.err == "nmt: these models did not learn to copy and reverse: general\n"
    assert result.out.endswith("   did not learn\n")


def test_an_attention_that_is_not_known_is_refused(nmt: Run) -> None:
    result = nmt("selftest", "--attention", "generall")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(
        "nmt: --attention generall: unknown; choose from dot, general, concat,"
    )
