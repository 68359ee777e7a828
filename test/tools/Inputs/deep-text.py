"""Writes a module of as many brackets within each other as it is told, or what an editor says that opens such a file
(`--open`), and of one that opens a harmless one and then changes it so (`--change`)."""

import json
import sys

brackets = int(sys.argv[1])
text = "func.func private @deep() attributes {a = " + "[" * brackets + "]" * brackets + "}\n"


def message(method, parameters, **more):
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": parameters, **more})


if len(sys.argv) == 2:
    print(text, end="")
    raise SystemExit

uri, harmless = "test:///deep.mlir", "func.func private @deep()\n"
opens = sys.argv[2] == "--open"
document = {"uri": uri, "languageId": "mlir", "version": 1, "text": text if opens else harmless}
session = [
    message("initialize", {"processId": 1, "rootPath": "", "capabilities": {}, "trace": "off"}, id=0),
    message("textDocument/didOpen", {"textDocument": document}),
]
if not opens:
    changes = [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}, "text": text}]
    session.append(
        message("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes})
    )
session += [
    message("textDocument/completion", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 60}}, id=1),
    message("shutdown", None, id=2),
    message("exit", None),
]
print("\n// -----\n".join(session))
