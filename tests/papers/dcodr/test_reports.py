"""Reports on DCoDR: every number of the tables, as the paper prints it; and verdicts on made-up results."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.experiments import find_report, reports
from setsup.experiments.report.fill import Result, fill

METHODS = ("LORD", "DRNET", "ML-VAE", "DCoDR-norec", "DCoDR")

# typed from the paper a second time, in its own layout
TABLE_2 = """
LORD .009/.940 .393/.670 .703/.995 .019/.862
DRNET .504/.909 .953/.899 .892/1 .084/.795
ML-VAE .697/.930 .968/.944 .999/1 .136/.723
DCoDR-norec .005/.970 .071/.730 .246/.997 .015/1.127
DCoDR .005/.980 .143/.785 .245/.999 .017/.858
optimal .005/1 .021/1 .251/1 .002/0
"""
TABLE_3 = {
    "no domain negatives": ".863/.829 .879/.754",
    "no positives": ".057/.555 .021/.166",
    "no pre-training": ".253/.701 .298/.716",
    "SimSiam augmentations": ".244/.643 .246/.658",
    "complete": ".143/.785 .071/.730",
}
TABLE_4 = """
LORD .92 .08 .71 .75
DRNET .87 .04 .94 .72
ML-VAE .71 .03 .48 .78
DCoDR-norec .97 .36 .99 .53
DCoDR .97 .40 1 .90
"""
TABLE_5 = """
LORD 7.5 15.5 18 160
DCoDR 5.5 9.5 11.5 30
DCoDR-norec 1.5 3.5 3.5 9
"""
EACH = {
    "table8": """
domain azimuth elevation lighting
LORD .393 .731 .384 .895
DRNET .953 .973 .766 .957
ML-VAE .968 .982 .868 .982
DCoDR-norec .071 .619 .594 .977
DCoDR .143 .684 .695 .977
""",
    "table9": """
domain floor_hue wall_hue object_hue scale orientation
LORD .703 .998 .999 .990 .991 .999
DRNET .892 1 1 1 .999 1
ML-VAE .999 1 1 1 1 1
DCoDR-norec .246 1 .999 .998 .991 .997
DCoDR .245 .999 .999 .999 1 .999
""",
    "table10": """
azimuth elevation lighting all
LORD .90 .30 .79 .08
DRNET .99 .35 .67 .04
ML-VAE .99 .56 .43 .026
DCoDR-norec .65 .52 .97 .36
DCoDR .65 .61 .97 .40
""",
    "table11": """
floor_hue wall_hue object_hue scale orientation all
LORD .99 1 .94 .96 .81 .71
DRNET 1 .99 1 .96 .99 .94
ML-VAE .71 .98 .79 .99 1 .48
DCoDR-norec 1 1 1 1 1 .99
DCoDR 1 1 1 1 1 1
""",
    "table12": """
shoe_type gender all
LORD .94 .79 .75
DRNET .93 .76 .72
ML-VAE .96 .81 .78
DCoDR-norec .79 .62 .53
DCoDR .98 .91 .90
""",
}
APPENDIX = """
horizontal flip | .861/.1212 | .868/.3387 | .876/.2869
vertical flip | .853/.1991 | .770/.3458 | .751/.3925
low contrast | 1.231/.0710 | 3.537/.1442 | .756/.0557
low brightness | .749/.1978 | 1.098/.2265 | .429/.0755
hue | 1.118/.0725 | 1.015/.0829 | .496/.1507
erasing | .728/.1994 | .884/.1994 | .776/.1968
affine | .479/.2658 | .734/.4116 | .736/.4675
grey | .957/.0479 | .939/.0502 | .464/.0729
crop | .808/.1683 | .830/.2096 | .889/.2380
high brightness | .355/.0372 | 1.188/.0956 | .875/.0950
high contrast | .312/.0356 | .454/.0499 | .534/.0862
high saturation | .337/.0095 | .768/.0243 | .632/.0445
blur | .080/.0111 | .180/.0196 | .055/.0071
"""


def lines(text: str) -> dict[str, list[str]]:
    """Words of each line by its first one."""
    return {words[0]: words[1:] for words in map(str.split, text.strip().splitlines())}


def paper(name: str) -> dict[tuple[str, str], float]:
    return dict(find_report(f"dcodr/{name}").references["the paper"])


def test_table_1() -> None:
    expected = {"Gaussian blur": (0.002, 0.960), "horizontal flip": (0.003, 0.725)}
    assert paper("table1") == {
        (label, key): value
        for label, row in expected.items()
        for key, value in zip(("domain", "informativeness"), row, strict=True)
    }


def test_table_2() -> None:
    datasets = ("Cars3D", "SmallNORB", "Shapes3D", "CelebA")
    expected, optimal = {}, {}
    for method, cells in lines(TABLE_2).items():
        for dataset, cell in zip(datasets, cells, strict=True):
            domain, second = map(float, cell.split("/"))
            key = "landmarks: L1" if dataset == "CelebA" else "probes: informativeness"
            of = optimal if method == "optimal" else expected
            label = f"{dataset}, {'DCoDR' if method == 'optimal' else method}"
            of |= {(label, "probes: domain"): domain, (label, key): second}
    assert paper("table2") == expected
    assert find_report("dcodr/table2").references["optimal"] == optimal


def test_table_3() -> None:
    expected = {}
    for part, cells in TABLE_3.items():
        for method, cell in zip(("DCoDR", "DCoDR-norec"), cells.split(), strict=True):
            for key, value in zip(("domain", "informativeness"), cell.split("/"), strict=True):
                expected[f"{method}, {part}", key] = float(value)
    assert paper("table3") == expected


def test_table_4() -> None:
    datasets = ("Cars3D", "SmallNORB", "Shapes3D", "Edges2Shoes")
    assert paper("table4") == {
        (f"{dataset}, {method}", "all"): float(cell)
        for method, cells in lines(TABLE_4).items()
        for dataset, cell in zip(datasets, cells, strict=True)
    }


def test_table_5() -> None:
    found = paper("table5")
    for method, cells in lines(TABLE_5).items():
        for dataset, cell in zip(("Cars3D", "SmallNORB", "Shapes3D", "CelebA"), cells, strict=True):
            if method == "LORD":  # the paper has one number for both stages
                assert found[f"{dataset}, LORD, first stage", "hours"] == f"{cell}, both stages"
            else:
                assert found[f"{dataset}, {method}", "hours"] == float(cell)
    assert len(found) == 12


@pytest.mark.parametrize(("table", "place"), [("table6", 0), ("table7", 1)])
def test_tables_6_and_7(table: str, place: int) -> None:
    expected = {}
    for line in APPENDIX.strip().splitlines():
        transform, *cells = line.split(" | ")
        for dataset, cell in zip(("Cars3D", "Edges2Shoes", "CelebA"), cells, strict=True):
            expected[f"{dataset}, {transform}"] = float(cell.split("/")[place])
    assert {label: value for (label, _), value in paper(table).items()} == expected
    assert len({key for _, key in paper(table)}) == 1


@pytest.mark.parametrize("table", EACH)
def test_tables_of_single_factors(table: str) -> None:
    rows = lines(EACH[table].strip().partition("\n")[2])
    keys = EACH[table].strip().splitlines()[0].split()
    expected = {(m, key): float(cell) for m, cells in rows.items() for key, cell in zip(keys, cells, strict=True)}
    assert paper(table) == expected
    assert [row.label for row in find_report(f"dcodr/{table}").rows] == list(METHODS)


NAMES = sorted(name for name in reports() if name.startswith("dcodr/"))


def verdicts(name: str, values: dict[str, dict[str, float]]) -> list[tuple[bool | None, str]]:
    """What a report says of results by the labels of rows."""
    report = find_report(f"dcodr/{name}")
    presets = {row.label: row.preset for row in report.rows}
    results = [Result(presets[label], 0, "runs", values=row) for label, row in values.items()]
    filled = fill(report, results, {row.preset: 1 for row in report.rows})
    return [(verdict.holds, verdict.found) for verdict in filled.verdicts]


def probed(domain: float, attributes: float) -> dict[str, float]:
    return {"probes: domain": domain, "probes: informativeness": attributes}


def test_the_paper_s_own_numbers_satisfy_its_claims() -> None:
    for name in ("table1", "table2", "table3"):
        said = paper(name)
        rows: dict[str, dict[str, float]] = {}
        for (label, key), value in said.items():
            rows.setdefault(label, {})[key] = value
        found = verdicts(name, rows)
        assert found
        assert all(holds for holds, _ in found), (name, found)


def test_a_baseline_with_less_of_the_domain_refutes_the_first_claim() -> None:
    rows = {"LORD": probed(0.5, 0.9), "ML-VAE": probed(0.9, 0.9), "DCoDR-norec": probed(0.3, 0.9)}
    (holds, found), (informed, _), (negatives, _) = verdicts("shapes3d-small", rows)
    assert (holds, informed, negatives) == (True, None, None)
    assert "DCoDR-norec 0.300, LORD 0.500, ML-VAE 0.900" in found
    rows["LORD"] = probed(0.29, 0.9)
    assert verdicts("shapes3d-small", rows)[0][0] is False


def test_what_domain_negatives_change() -> None:
    rows = {"DCoDR-norec": probed(0.5, 0.9), "DCoDR-norec, no domain negatives": probed(0.7, 0.9)}
    assert verdicts("shapes3d-small", rows)[2] == (
        True,
        "DCoDR-norec 0.500, DCoDR-norec, no domain negatives 0.700 (+0.200)",
    )
    rows["DCoDR-norec, no domain negatives"] = probed(0.45, 0.9)
    holds, found = verdicts("shapes3d-small", rows)[2]
    assert holds is False
    assert "(−0.050)" in found


def test_speed_compares_an_epoch_of_both_stages_of_lord() -> None:
    names = {"LORD, first stage": 3.0, "LORD, second stage": 4.0, "DCoDR": 5.0, "DCoDR-norec": 2.0}
    rows = {f"Shapes3D, {label}": {"seconds per epoch": value} for label, value in names.items()}
    assert verdicts("table5-small", rows)[0][0] is True
    rows["Shapes3D, DCoDR"] = {"seconds per epoch": 7.5}
    assert verdicts("table5-small", rows)[0][0] is False
