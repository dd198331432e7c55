def pytest_addoption(parser):
    parser.addoption(
        "--set-exact-output",
        action="store_true",
        help="write what the cases print into their exit, stdout and stderr files; look at the difference",
    )
