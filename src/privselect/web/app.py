"""The application: the page, and the API behind it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Body, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from privselect._util.validation import truncate, format_value
from privselect.web.limits import COME_AGAIN, MOST_NUMBER, MOST_TEXT
from privselect.web.middleware import Guard
from privselect.web.schemas import Answer, Curves, Designed, DesignQuestion, Nearby, Question, Refusal, Rows, Settled, complaint
from privselect.web.worker_pool import ANSWERS, DETAILS, LONG, BusyError, Crew, DroppedError, FailedError, Lane, LimitError, RefusalError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

PAGE = files("privselect.web") / "page"
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "Not JSON, or not this host."},
    408: {"model": Refusal, "description": "Begun, and not ended in time."},
    413: {"model": Refusal, "description": "Too large."},
    415: {"model": Refusal, "description": "Not of the type application/json."},
    422: {"model": Refusal, "description": "A value that is not allowed, or a question that is too much work."},
    429: {"model": Refusal, "description": "Too much is being asked; come again after the seconds in Retry-After."},
    503: {"model": Refusal, "description": "The server is being ended."},
}
Asked = Annotated[Nearby, Body()]
WithAnswer = Annotated[Settled, Body()]
AskedDesign = Annotated[DesignQuestion, Body()]


def application(hosts: Collection[str] | None = None) -> Guard:
    """The whole, to be run by an ASGI server; asked under another host name than these, it refuses."""
    return Guard(_application(), hosts)


def _application() -> FastAPI:
    app = FastAPI(
        title="privselect",
        version=version("privselect"),
        description="The exact price of releasing only the winner of several private trials. No data is ever sent here.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
        responses=_REFUSALS,
    )
    for error in (RefusalError, LimitError, BusyError, DroppedError, FailedError, RequestValidationError, HTTPException):
        app.add_exception_handler(error, _explained)

    @app.post("/api/answer", response_model=Answer)
    async def answer(request: Request, asked: Asked) -> Response:
        """Solve for the one ?."""
        return await _asked(request, "answer", asked, ANSWERS)

    @app.post("/api/curves", response_model=Curves)
    async def curves(request: Request, asked: WithAnswer) -> Response:
        """Epsilon along the mean of K and along delta."""
        return await _asked(request, "curves", asked, DETAILS)

    @app.post("/api/compare", response_model=Rows)
    async def compare(request: Request, asked: WithAnswer) -> Response:
        """What other bounds charge, and what they would have forced."""
        return await _asked(request, "compare", asked, DETAILS)

    @app.post("/api/design", response_model=Designed)
    async def design(request: Request, asked: AskedDesign) -> Response:
        """The law of K with the most chance of a good trial."""
        return await _asked(request, "design", asked, LONG)

    @app.post("/api/plan", response_class=Response, responses={200: {"content": {"application/toml": {}}, "description": "plan.toml"}})
    async def plan(request: Request, asked: WithAnswer) -> Response:
        """The plan file."""
        return await _asked(request, "plan", asked, DETAILS, ("application/toml", "plan.toml"))

    @app.post("/api/certificate", responses={200: {"description": "certificate-draft.json"}})
    async def certificate(request: Request, asked: WithAnswer) -> Response:
        """A draft of the certificate."""
        return await _asked(request, "certificate", asked, LONG, ("application/json", "certificate-draft.json"))

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(str(PAGE / "index.html"))

    app.mount("/static", StaticFiles(directory=str(PAGE)), name="static")
    return app


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[dict[str, Crew]]:
    """What it gives is a state that requests have, and the server that runs the application."""
    crew = Crew()
    try:
        await crew.begin()
        yield {"crew": crew}
    finally:
        crew.close()


async def _asked(
    request: Request, kind: str, asked: Question | DesignQuestion, lane: Lane, file: tuple[str, str] | None = None
) -> Response:
    """What the crew says; dropped where the client has gone."""
    answering = asyncio.ensure_future(request.state.crew.ask(kind, asked.model_dump(), lane))
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            return _refused(400, "the client has gone")  # and reads this no more
        answer = answering.result()
    finally:
        for task in (answering, leaving):
            task.cancel()
        await asyncio.gather(answering, leaving, return_exceptions=True)
    if file is None:
        return JSONResponse(answer)
    media_type, name = file
    return Response(answer, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _refused(status: int, message: str, field: str | None = None, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(complaint(message, field), status, headers)


async def _explained(_: Request, error: Exception) -> JSONResponse:
    """Why there is no answer."""
    match error:
        case RefusalError():
            said = _refused(422, str(error), error.field)
        case LimitError():
            said = _refused(422, f"{error}; the command line and Python have no such limit")
        case BusyError():
            said = _refused(429, f"the server is busy, ask again in {COME_AGAIN} seconds", headers={"Retry-After": str(COME_AGAIN)})
        case DroppedError():
            said = _refused(503, "the server is being ended")
        case RequestValidationError():
            said = _malformed(error)
        case HTTPException(status_code=400):  # only the reader of bodies says so, of what its parser gives up on
            said = _refused(400, "the body must be JSON in UTF-8, not nested deeply, with numbers of few digits")
        case HTTPException():
            message = f"{str(error.detail).lower()}: the page is at /, its API is described at /api/openapi.json"
            said = _refused(error.status_code, message, headers=dict(error.headers or {}))
        case _:
            said = _refused(500, "the question could not be answered, by a fault of the server that its log tells")
    return said


def _malformed(error: RequestValidationError) -> JSONResponse:
    """The first of the faults of a body, in one sentence."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _refused(400, "the body must be JSON")
    field = next((str(part) for part in first["loc"][1:]), None)
    if field is None:
        return _refused(422, f"the body must be a JSON object, got {format_value(first.get('input'))}")
    name = truncate(field)
    if first["type"] == "missing":
        return _refused(422, f"`{name}` is missing", name)
    if first["type"] == "extra_forbidden":
        return _refused(422, f"`{name}` is no field of this question", name)
    return _refused(422, f"`{name}` must be {_WANTED.get(field, 'a number')}, got {format_value(first.get('input'))}", name)


_NUMBER = f"a number, or the text of one in at most {MOST_NUMBER} characters"
_WANTED = {
    "mechanism": f"a text form such as gaussian(sigma=4) in at most {MOST_TEXT} characters",
    "count": f"a text form such as geometric(mean=30) in at most {MOST_TEXT} characters, or null",
    **dict.fromkeys(("epsilon", "delta"), f"{_NUMBER}, or ?"),
    **dict.fromkeys(("tau", "cap"), _NUMBER),
    "mean": f"{_NUMBER}, or null",
}
