"""A log directory as programs leave it, and TensorBoard's own server over it."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "views"))

from tf_setup import clean_hook, seen

__all__ = ["clean_hook", "seen"]


class Server:
    """Routes of the plugin through TensorBoard's application, as the browser would ask for them."""

    def __init__(self, logdir, asset_logdir=None):
        from tensorboard import context as context_lib
        from tensorboard.backend import application
        from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
        from tensorboard.plugins import base_plugin
        from werkzeug import test

        from tf_regal.tensorboard import plugin

        self._logdir = str(logdir)
        self._multiplexer = multiplexer = plugin_event_multiplexer.EventMultiplexer()
        self.reload()
        provider = data_provider.MultiplexerDataProvider(multiplexer, str(logdir))
        context = base_plugin.TBContext(data_provider=provider, logdir=str(logdir) if asset_logdir is None else asset_logdir)
        self.plugin = plugin.RegalPlugin(context)
        self.context = context_lib.RequestContext()
        self.client = test.Client(application.TensorBoardWSGI([self.plugin], data_provider=provider))

    def reload(self):
        """What TensorBoard does every few seconds."""
        self._multiplexer.AddRunsFromDirectory(self._logdir)
        self._multiplexer.Reload()

    def get(self, route, method="GET", **query):
        return self.client.open(f"/data/plugin/tf_regal/{route}", method=method, query_string=query)

    def plans(self):
        response = self.get("plans")
        assert response.status_code == 200
        return response.json["plans"], response.json["problems"]


@pytest.fixture
def serve():
    return Server
