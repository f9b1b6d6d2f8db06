"""``privselect serve``."""

import sys
import webbrowser
from typing import Annotated

import typer

from privselect._util.validation import integer_range
from privselect.text_forms import parse_parameter

Port = Annotated[str, typer.Option("--port", metavar="P", help="The port; 0 takes any free one.")]
Host = Annotated[
    str,
    typer.Option("--host", metavar="H", help="The address to listen on; by default others than this machine cannot ask."),
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]

_PORTS = integer_range(0, 65_535)


def serve(port: Port = "8765", host: Host = "127.0.0.1", open_page: Open = False) -> None:
    """Serve the planner page on this machine: sliders in, prices out; no data is ever sent to it."""
    from privselect.web.server import LOCAL
    from privselect.web.server import serve as run

    number = int(parse_parameter("port", port, _PORTS))

    def ready(address: str) -> None:
        print(f"the planner is at {address}; end it with Ctrl-C")
        if host not in LOCAL:
            print("it listens beyond this machine: whoever reaches it can use it, and there is no password", file=sys.stderr)
        sys.stdout.flush()
        if open_page:
            webbrowser.open(address)

    run(host, number, ready)
