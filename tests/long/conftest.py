"""Says at the end how many schedules of the simulation held."""


def pytest_terminal_summary(terminalreporter):
    properties = [p for report in terminalreporter.getreports("passed") for p in report.user_properties]
    schedules = sum(value for name, value in properties if name == "schedules")
    if schedules:
        terminalreporter.write_line(f"simulation: {schedules} schedules held")
