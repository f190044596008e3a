"""One HTML file with all views of a plan: the front end and the plan's pieces in the page, nothing from outside."""

import base64
import hashlib
import importlib.resources
import json
import re

# Each after what it imports.
MODULES = (
    "scales.js", "bars.js", "graph.js", "colors.js", "data.js", "dom.js", "curves.js", "tables.js", "waits.js", "side.js", "list.js", "memory.js",
    "timeline.js", "plan.js", "panels.js", "app.js", "page.js",
)  # fmt: skip

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const)) (\w+)", re.MULTILINE)


def static_files():
    """The directory of the front end's files."""
    return importlib.resources.files("tf_regal.views") / "static"


def script():
    """All modules as one script: a page that is opened from a file may load none. Each becomes a function that returns what it exports."""
    parts = ['"use strict";\nconst modules = {};\n']
    for name in MODULES:
        text = (static_files() / name).read_text(encoding="utf-8")
        exported = ", ".join(found for _, found in _EXPORT.findall(text))
        body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(r'const \1 = modules["\2"];', text))
        parts.append(f'modules["{name}"] = (() => {{\n{body}\nreturn {{{exported}}};\n}})();\n')
    return "".join(parts) + 'modules["page.js"].start();\n'


def html(pieces, summary):
    """The text of the file. pieces, summary: as of `views.chunks.chunks` and `views.summary.of_plan`."""
    encoded = {name: base64.b64encode(content).decode() for name, content in pieces.items()}
    # Within a script element only "<" could end the data.
    content = json.dumps({"plans": [summary], "pieces": {summary["id"]: encoded}}, separators=(",", ":")).replace("<", "\\u003c")
    code, style = script(), (static_files() / "style.css").read_text(encoding="utf-8")
    policy = f"default-src 'none'; script-src '{_digest(code)}'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<meta name="viewport" content="width=device-width">\n'
        f'<title>tf-regal plan</title>\n<style>{style}</style>\n</head>\n<body>\n<div id="regal" class="regal"></div>\n'
        f'<script type="application/json" id="tf-regal-data">{content}</script>\n<script>{code}</script>\n</body>\n</html>\n'
    )


def _digest(code):
    return "sha256-" + base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
