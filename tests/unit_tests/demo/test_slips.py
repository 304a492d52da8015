from graphrag_eval_lc.demo.slips import SLIPS, Slip


def test_each_kind_of_slip_happens():
    assert set(SLIPS.values()) == set(Slip)
