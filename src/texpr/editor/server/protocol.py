"""The protocol of pygls, with an answer to requests that cannot be read."""

from __future__ import annotations

from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import JsonRPCNotification

IGNORED = "$/unreadable"
"""The method of a message that was answered already."""


class Answering(LanguageServerProtocol):
    """Answers a request whose parameters cannot be read with an error; pygls has it wait forever."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """The message in `data`."""
        try:
            return super().structure_message(data)
        except JsonRpcException as wrong:
            number = data.get("id")
            if isinstance(number, int | str) and "method" in data:
                self._send_response(number, error=lsp.ResponseError(wrong.code, wrong.message))
            return JsonRPCNotification(IGNORED, self.VERSION, None)
