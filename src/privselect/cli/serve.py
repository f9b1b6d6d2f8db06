"""``privselect serve``."""

import sys
import webbrowser
from typing import Annotated

import typer

from privselect._util.validation import integer_range
from privselect.cli.options import number_option, option

PortOption = Annotated[int, number_option("port", "P", integer_range(0, 65_535), "The port. 0 takes any free port.")]
HostOption = Annotated[str, option("host", "H", "The address to listen on. The default accepts local connections only.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


def serve(port: PortOption = 8765, host: HostOption = "127.0.0.1", open_page: OpenOption = False) -> None:
    """Serve the planner page on this machine. The planner needs parameters and no private data."""
    from privselect.web.server import LOCAL
    from privselect.web.server import serve as run_server

    def ready(address: str) -> None:
        print(f"the planner is at {address}; stop it with Ctrl-C")
        if host not in LOCAL:
            print("it accepts connections from other machines without a password", file=sys.stderr)
        sys.stdout.flush()
        if open_page:
            webbrowser.open(address)

    run_server(host, port, ready)
