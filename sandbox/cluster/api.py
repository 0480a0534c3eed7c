"""A small client of an API server: JSON in, JSON out. Typed clients are ten times its size and start a second later."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import requests

_SECONDS = 10.0
_TOO_EARLY = 429
_TRIES, _PAUSE = 20, 0.5
_MERGE = "application/merge-patch+json"
_OPERATIONS = "application/json-patch+json"


class Refusal(Exception):
    """The API server refuses a call, or does not answer (``status`` 0)."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Api:
    """Calls one API server. Safe to share between threads that make no call at the same time.

    Args:
        url: ``https://127.0.0.1:port``.
        token: A bearer token.
        authority: The certificate that the server's is judged by.
    """

    def __init__(self, url: str, token: str, authority: Path) -> None:
        self._url = url
        self._session = requests.Session()
        # A proxy of the user's has no business between two ends of one machine.
        self._session.trust_env = False
        self._session.verify = str(authority)
        self._session.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """Reads one object or list.

        Raises:
            Refusal: as for all calls here.
        """
        return self._call("GET", path, query=query)

    def find(self, path: str) -> dict[str, Any] | None:
        """Reads one object; None where there is none."""
        try:
            return self.get(path)
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Reads a list."""
        return self.get(path, **query)["items"]

    def create(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Makes an object in a collection."""
        return self._call("POST", path, document)

    def patch(self, path: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Merges a change into an object (RFC 7386)."""
        return self._call("PATCH", path, change, kind=_MERGE)

    def change(self, path: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Applies operations to an object (RFC 6902), all or none."""
        return self._call("PATCH", path, operations, kind=_OPERATIONS)

    def delete(self, path: str, **options: Any) -> None:
        """Deletes an object; one that is gone already is no fault."""
        try:
            self._call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})
        except Refusal as refusal:
            if refusal.status != 404:
                raise

    def ready(self) -> bool:
        """Whether the server says that it is ready."""
        try:
            return self._session.get(f"{self._url}/readyz", timeout=2).ok
        except (requests.RequestException, OSError):
            # OSError: it has not written its certificate yet.
            return False

    def _call(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        body = None if document is None else json.dumps(document)
        for _ in range(_TRIES):
            try:
                answer = self._session.request(
                    method,
                    f"{self._url}{path}",
                    params=query,
                    data=body,
                    headers={"Content-Type": kind},
                    timeout=_SECONDS,
                )
            except (requests.RequestException, OSError) as fault:
                raise Refusal(0, f"the API server does not answer: {type(fault).__name__}") from fault
            # So it says for a moment of a kind whose CRD is new: "storage is (re)initializing".
            if answer.status_code != _TOO_EARLY:
                break
            time.sleep(_PAUSE)
        if not answer.ok:
            raise Refusal(answer.status_code, _message(answer))
        return answer.json()


def _message(answer: requests.Response) -> str:
    try:
        return answer.json()["message"]
    except (ValueError, KeyError):
        return f"{answer.status_code} {answer.reason}"
