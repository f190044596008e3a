"""The plugin that TensorBoard loads. Read-only routes; what they give is described in http_api.md."""

import json
import os

from tensorboard import plugin_util
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from tf_regal import storage
from tf_regal.plans import chrome_trace
from tf_regal.tensorboard import metadata, reader
from tf_regal.views import page

_STATIC = (*page.MODULES, "main.js", "style.css")
_TYPES = {".js": "text/javascript", ".css": "text/css"}


class RegalPlugin(base_plugin.TBPlugin):
    """REGAL: plans and their schedules."""

    plugin_name = metadata.PLUGIN_NAME

    def __init__(self, context):
        self._reader = reader.Reader(context.data_provider, os.path.expanduser(context.logdir or "")) if context.data_provider else None

    def get_plugin_apps(self):
        routes = {"/plans": self._plans, "/piece": self._piece, "/download": self._download}
        routes |= {f"/static/{name}": self._static(name) for name in _STATIC}
        return {path: _read_only(serve) for path, serve in routes.items()}

    def is_active(self):
        return False  # data_plugin_names says when: where there is data of ours

    def data_plugin_names(self):
        return (metadata.PLUGIN_NAME,)

    def frontend_metadata(self):
        return base_plugin.FrontendMetadata(es_module_path="/static/main.js", tab_name="REGAL")

    def _static(self, name):
        def serve(request):
            content = (page.static_files() / name).read_bytes()
            return http_util.Respond(request, content, _TYPES[name[name.rindex("."):]])

        return serve

    def _plans(self, request):
        environ = request.environ
        summaries, problems = self._reader.listing(plugin_util.context(environ), plugin_util.experiment_id(environ))
        return http_util.Respond(request, {"plans": summaries, "problems": problems}, "application/json")

    def _piece(self, request):
        name = request.args.get("name", "")
        content = self._reader.piece(request.args.get("id", ""), name)
        return http_util.Respond(request, content, "application/json" if name.endswith(".json") else "application/octet-stream")

    def _download(self, request):
        identity, what = request.args.get("id", ""), request.args.get("what", "")
        if what not in ("plan", "trace"):
            raise reader.NotThere(f"what={what!r} cannot be downloaded; expected 'plan' or 'trace'")
        plan = self._reader.plan(identity)
        content = storage.checked_json(plan.to_json()) if what == "plan" else json.dumps(chrome_trace.events(plan))
        response = http_util.Respond(request, content, "application/json")
        response.headers["Content-Disposition"] = f'attachment; filename="{identity}.{what}.json"'
        return response


def _read_only(serve):
    """GET and HEAD only; what is missing or damaged is a 404 with its reason."""

    @wrappers.Request.application
    def app(request):
        if request.method not in ("GET", "HEAD"):
            response = http_util.Respond(request, {"error": f"{request.method} is not allowed: this is for reading"}, "application/json", code=405)
            response.headers["Allow"] = "GET, HEAD"
            return response
        try:
            return serve(request)
        except reader.NotThere as error:
            return http_util.Respond(request, {"error": str(error)}, "application/json", code=404)

    return app
