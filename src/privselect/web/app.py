"""The ASGI application: the page and its JSON API."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from privselect.web import schemas
from privselect.web.limits import RETRY_SECONDS
from privselect.web.middleware import RequestGuard
from privselect.web.schemas import (
    AdviceRequest,
    AnswerRequest,
    DesignRequest,
    ErrorResponse,
    RefusedError,
    SolvedRequest,
    error_body,
    explain_invalid,
)
from privselect.web.worker_pool import (
    ANSWER_JOBS,
    DETAIL_JOBS,
    LONG_JOBS,
    BusyError,
    CancelledByShutdownError,
    InternalError,
    JobClass,
    LimitError,
    WorkerPool,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from pydantic import BaseModel

PAGE = files("privselect.web") / "page"
_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "The body is not JSON, or the Host header is not allowed."},
    408: {"model": ErrorResponse, "description": "The request is incomplete."},
    413: {"model": ErrorResponse, "description": "The request is too large."},
    415: {"model": ErrorResponse, "description": "The content type is not application/json."},
    422: {"model": ErrorResponse, "description": "A value is not allowed, or the question takes too much work."},
    429: {"model": ErrorResponse, "description": "Server busy. Retry after the seconds in Retry-After."},
    503: {"model": ErrorResponse, "description": "The server is shutting down."},
}


def application(hosts: Collection[str] | None = None) -> RequestGuard:
    """Return the ASGI application. It refuses requests for any other host name than ``hosts``, if given."""
    return RequestGuard(_application(), hosts)


def _application() -> FastAPI:
    app = FastAPI(
        title="privselect",
        version=version("privselect"),
        description="The exact privacy cost of releasing only the best of several private trials. The API takes no data.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # these pages load scripts from other hosts
        redoc_url=None,
        lifespan=_lifespan,
        responses=_ERRORS,
    )
    for error in (RefusedError, LimitError, BusyError, CancelledByShutdownError, InternalError, RequestValidationError, HTTPException):
        app.add_exception_handler(error, _error_response)

    @app.post("/api/answer", response_model=schemas.Answer)
    async def answer(request: Request, body: AnswerRequest) -> Response:
        """Solve for the one ?."""
        return JSONResponse(await _run(request, "answer", body, ANSWER_JOBS))

    @app.post("/api/curves", response_model=schemas.Curves)
    async def curves(request: Request, body: SolvedRequest) -> Response:
        """Compute epsilon along the mean of K and along delta."""
        return JSONResponse(await _run(request, "curves", body, DETAIL_JOBS))

    @app.post("/api/compare", response_model=schemas.Comparison)
    async def compare(request: Request, body: SolvedRequest) -> Response:
        """Compare the exact bound with other bounds."""
        return JSONResponse(await _run(request, "compare", body, DETAIL_JOBS))

    @app.post("/api/design", response_model=schemas.Design)
    async def design(request: Request, body: DesignRequest) -> Response:
        """Find the law of K with the highest probability of a good trial."""
        return JSONResponse(await _run(request, "design", body, LONG_JOBS))

    @app.post("/api/advise", response_model=schemas.Advice)
    async def advise(request: Request, body: AdviceRequest) -> Response:
        """Compare the ways to tune a training: its noise in each of them."""
        return JSONResponse(await _run(request, "advise", body, LONG_JOBS))

    @app.post("/api/plan", response_class=Response, responses={200: {"content": {"application/toml": {}}, "description": "plan.toml"}})
    async def plan(request: Request, body: SolvedRequest) -> Response:
        """Write the plan file."""
        return _file(await _run(request, "plan", body, DETAIL_JOBS), "application/toml", "plan.toml")

    @app.post("/api/certificate", responses={200: {"description": "certificate-draft.json"}})
    async def certificate(request: Request, body: SolvedRequest) -> Response:
        """Write a draft certificate."""
        return _file(await _run(request, "certificate", body, LONG_JOBS), "application/json", "certificate-draft.json")

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(str(PAGE / "index.html"))

    app.mount("/static", StaticFiles(directory=str(PAGE)), name="static")
    return app


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[dict[str, WorkerPool]]:
    """Yield the state that requests and the server share."""
    workers = WorkerPool()
    try:
        await workers.start()
        yield {"workers": workers}
    finally:
        workers.close()


async def _run(request: Request, kind: str, body: BaseModel, jobs: JobClass) -> Any:
    """Return the answer of a worker, and drop the question if the client disconnects."""
    running = asyncio.ensure_future(request.state.workers.run(kind, body, jobs))
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([running, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise HTTPException(400)  # no client is left to read it
        return running.result()
    finally:
        for task in (running, leaving):
            task.cancel()
        await asyncio.gather(running, leaving, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _file(content: str, media_type: str, name: str) -> Response:
    return Response(content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def _error_response(_: Request, error: Exception) -> JSONResponse:
    """Return the JSON response for an error."""
    field, headers = None, {}
    match error:
        case RequestValidationError():
            status, message, field = explain_invalid(error.errors()[0])
        case RefusedError():
            status, message, field = 422, str(error), error.field
        case LimitError():
            status, message = 422, f"{error}; use the command line or Python, which have no such limit"
        case BusyError():
            status, message, headers = 429, "Server busy. Retry in a few seconds.", {"Retry-After": str(RETRY_SECONDS)}
        case CancelledByShutdownError():
            status, message = 503, "the server is shutting down"
        case HTTPException(status_code=400):  # from FastAPI, for a body that the JSON parser cannot read
            status, message = 400, "the body must be JSON in UTF-8, without deep nesting or very long numbers"
        case HTTPException():
            status, headers = error.status_code, dict(error.headers or {})
            message = f"{str(error.detail).lower()}: the page is at /, and /api/openapi.json describes its API"
        case _:
            status, message = 500, "internal error; the server log has the details"
    return JSONResponse(error_body(message, field), status, headers)
