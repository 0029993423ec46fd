"""What ``p2psim forecast`` prints and draws of algorithms on graphs."""

from typing import TYPE_CHECKING

from p2psim.printing import MOST_ROWS, print_table

if TYPE_CHECKING:
    from p2psim.report.graph_forecasts import DrawnGraph
    from p2psim.study.forecasting.graph_study import GraphCellForecast

#: Moments of a run that a person is shown of one cell.
_MOMENTS = 8


def show_graphs(found: "list[GraphCellForecast]", name: str) -> None:
    """Print tables: the end, the agents, and the run, of each metric that is forecast."""
    for metric in dict.fromkeys(one.metric for one in found):
        some = [one for one in found if one.metric == metric]
        print_table([one.row() for one in some], f"{name}: expected {metric} at the end, and its parts")
        each = max(3, MOST_ROWS // len(some))
        agents = [row for one in some for row in one.agents(each)]
        print_table(agents, "\nthe noise that each agent adds, and how far it is from its optimum")
        if len(agents) < sum(len(one.agents()) for one in some):
            print("… and more agents; --json has all")
        print_table(
            [row for one in some for row in one.along(_MOMENTS)], f"\nexpected {metric} along the run"
        )


def draw_graphs(found: "list[GraphCellForecast]", folder: str) -> list[str]:
    """Draw all figures into a folder; returns the files."""
    from p2psim.forecast_captions import cell_labels
    from p2psim.report.graph_forecasts import draw_graph_forecasts

    drawn = [_drawn(one, label) for one, label in zip(found, cell_labels(found), strict=True)]
    return [str(path) for path in draw_graph_forecasts(drawn, folder)]


def _drawn(one: "GraphCellForecast", label: str) -> "DrawnGraph":
    from p2psim.forecast_captions import notes
    from p2psim.report.graph_forecasts import DrawnGraph
    from p2psim.study.forecasting.graph_forecast import DescentForecast

    made, descent = one.forecast, isinstance(one.forecast, DescentForecast)
    return DrawnGraph(
        label=label,
        notes=notes(one),
        axis=made.moments.axis,
        points=made.moments.points,
        expected=made.expected,
        noiseless=made.noiseless if isinstance(made, DescentForecast) else None,
        metric=one.metric,
        alone=made.alone if isinstance(made, DescentForecast) else None,
        records=made.setting.cell.problem.records if descent else None,
        apart=made.apart if isinstance(made, DescentForecast) else None,
        apart_alone=made.apart_alone if isinstance(made, DescentForecast) else None,
        calibration=None if one.calibration is None else one.calibration.points,
    )
