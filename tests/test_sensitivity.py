"""Expected uncertainties: differences in quadrature, plain values and back, averages."""

from dataclasses import FrozenInstanceError

import pytest

from qbdt.statistics.sensitivity import Expectation, SourceExpectation, quadratic_difference

TES = SourceExpectation("tes", 0.5, 3.0, 1.0)
STRENGTH = Expectation(4.0, 5.0, 6.0, (TES,))
MASS = Expectation(4.0, 5.0, 6.0, (TES,), "mass")


def test_differences_in_quadrature_are_never_negative():
    assert quadratic_difference(5.0, 4.0) == 3.0
    assert quadratic_difference(4.0, 5.0) == 0.0
    assert STRENGTH.delta_mu == 3.0


def test_plain_values_name_the_parameter_where_it_is_no_strength():
    assert "parameter" not in STRENGTH.to_dict()
    assert MASS.to_dict()["parameter"] == "mass"
    assert [Expectation.from_dict(one.to_dict()) for one in (STRENGTH, MASS)] == [STRENGTH, MASS]


def test_averages_need_the_same_sources():
    assert Expectation.mean([MASS]) == MASS
    other = Expectation(6.0, 7.0, 8.0, (SourceExpectation("tes", 1.5, 5.0, 3.0),))
    assert Expectation.mean([STRENGTH, other]) == Expectation(5.0, 6.0, 7.0, (SourceExpectation("tes", 1.0, 4.0, 2.0),))
    with pytest.raises(ValueError, match="shorter"):
        Expectation.mean([STRENGTH, Expectation(6.0, 7.0, 8.0)])


def test_tables_name_the_parameter():
    for one, name in ((STRENGTH, "σ_μ"), (MASS, "σ of mass")):
        (table,) = one.tables()
        assert table.header == ("source", "c", f"added to {name}, ordered by s/b", "by the score")
        assert f"{name}, all sources" in {row[0] for row in table.rows}


def test_a_source_that_is_measured_is_no_source_of_its_own_uncertainty():
    own = SourceExpectation("mass", -1.0, 0.0, 0.0)
    (table,) = Expectation(4.0, 5.0, 5.0, (own, TES), "mass").tables()
    assert table.header == ("source", "c", "added to σ of mass")
    assert [row[0] for row in table.rows] == ["no systematics", "tes", "σ of mass, all sources"]
    assert [row[2] for row in table.rows] == ["4", "1", "5"]


def test_an_expectation_of_a_source_is_not_changed():
    with pytest.raises(FrozenInstanceError):
        TES.cost = 1.0  # type: ignore[misc]
