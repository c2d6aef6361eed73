"""Delivery of alerts to a shell command, a webhook, or both."""

from __future__ import annotations

import http.client
import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from tamis._json import null_nonfinite
from tamis._validation import check_number, short_repr


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Rejects redirects, so that alerts are sent only to the given URL."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Return None: redirects are not followed."""
        return


class Delivery:
    """Sends each alert to a shell command, a webhook, or both.

    Parameters
    ----------
    command : str, optional
        Shell command, run once per alert, which it receives as JSON on standard input.
    webhook : str, optional
        URL (http or https) to which each alert is posted as JSON. Redirects are not followed.
    timeout : float, default=10
        Seconds after which an attempt is aborted, above 0.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> Delivery(command="cat > /dev/null").send({"feature": "age", "message": "age is no longer relevant"})
    []
    >>> Delivery(command="exit 3").send({"feature": "age"})
    ["the alert command 'exit 3' ended with exit code 3"]
    """

    def __init__(
        self, command: str | None = None, webhook: str | None = None, *, timeout: float = 10.0
    ) -> None:
        check_number("timeout", timeout, low=0.0, open_low=True)
        parts = urllib.parse.urlsplit(webhook or "http://none")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"webhook must be a URL that begins with http:// or https://, got {short_repr(webhook)}."
            )
        self.command, self.webhook, self.timeout = command, webhook, timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def send(self, alert: Mapping[str, Any]) -> list[str]:
        """Deliver an alert; a failed delivery raises nothing.

        Parameters
        ----------
        alert : mapping
            As :meth:`Watch.update <tamis.watch.watch.Watch.update>` returns it.

        Returns
        -------
        list of str
            A message for each failed delivery.
        """
        data = json.dumps(null_nonfinite(dict(alert)), default=str).encode()
        items = [
            None if self.command is None else self._run(data),
            None if self.webhook is None else self._post(data),
        ]
        return [failure for failure in items if failure is not None]

    def _run(self, data: bytes) -> str | None:
        assert self.command is not None
        subject = f"the alert command {short_repr(self.command)}"
        try:
            done = subprocess.run(
                self.command,
                shell=True,
                input=data,
                stdout=subprocess.DEVNULL,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{subject} took longer than {self.timeout:g} seconds"
        except OSError as error:
            return f"{subject} could not be started ({error.strerror or error})"
        return f"{subject} ended with exit code {done.returncode}" if done.returncode else None

    def _post(self, data: bytes) -> str | None:
        assert self.webhook is not None
        request = urllib.request.Request(
            self.webhook, data, {"Content-Type": "application/json", "User-Agent": "tamis"}, method="POST"
        )
        # The query of a webhook may be a secret.
        subject = f"the webhook at {urllib.parse.urlsplit(self.webhook).hostname}"
        try:
            self._opener.open(request, timeout=self.timeout).close()
        except urllib.error.HTTPError as error:
            error.close()
            return f"{subject} answered {error.code}"
        except (OSError, http.client.HTTPException) as error:
            return f"{subject} could not be reached ({getattr(error, 'reason', error)})"
        return None
