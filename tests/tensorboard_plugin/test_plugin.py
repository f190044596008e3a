"""The plugin's routes through a real WSGI client, over log directories as programs leave them, and damaged ones."""

import io
import json
import re
import shutil
import struct
import subprocess
import sys
import zipfile

import pytest
from werkzeug.http import parse_options_header

import tf_regal
from tf_regal.plans import Report
from tf_regal.plans.plan import Plan
from tf_regal.tensorboard import metadata, writer
from tf_regal.views import archive, chunks, page

from ..views.plans_for_views import HOSTILE, plan_of


@pytest.fixture
def logdir(tmp_path):
    """Two plans, one with hostile names, and a function that was skipped."""
    tf_regal.write_plan(plan_of(), tmp_path)
    writer.write_report(Report(HOSTILE[0], "planned", HOSTILE[1], plan=plan_of(hostile=True)), tmp_path)
    writer.write_report(Report("helper", "skipped", "it has fewer than min_ops=50 ops"), tmp_path)
    return tmp_path


def assets(logdir, ending):
    return sorted((logdir / metadata.ASSETS).glob(f"*.{ending}"))


def test_list_of_plans(logdir, serve):
    plans, problems = serve(logdir).plans()
    assert problems == []
    assert [(p["function"], p["status"], p["has_plan"]) for p in plans] == [
        (HOSTILE[0], "planned", True), (f"plan {plan_of().fingerprint[:8]}", "saved", True), ("helper", "skipped", False),
    ]  # fmt: skip
    saved = plans[1]
    assert saved["predicted"]["makespan_s"] == plan_of().predicted.makespan_s
    assert saved["default"]["peak_bytes"] == plan_of().default.peak_bytes
    assert plans[2]["reason"] == "it has fewer than min_ops=50 ops"


def test_pieces_are_those_of_the_plan(logdir, serve):
    server = serve(logdir)
    expected = chunks.chunks(plan_of(hostile=True))
    identity = server.plans()[0][0]["id"]
    for name, content in expected.items():
        response = server.get("piece", id=identity, name=name)
        assert response.status_code == 200
        assert response.data == content
        assert response.mimetype == ("application/json" if name.endswith(".json") else "application/octet-stream")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert json.loads(expected["names.json"])["names"][:2] == list(HOSTILE[:2])


def test_downloads(logdir, serve, tmp_path):
    server = serve(logdir)
    identity = server.plans()[0][1]["id"]
    response = server.get("download", id=identity, what="plan")
    assert parse_options_header(response.headers["Content-Disposition"]) == ("attachment", {"filename": f"{identity}.plan.json"})
    path = tmp_path / "again.json"
    path.write_bytes(response.data)
    assert json.dumps(tf_regal.load_plan(path).to_json()) == json.dumps(plan_of().to_json())
    trace = server.get("download", id=identity, what="trace").json
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == len(plan_of().ops) + len(plan_of().transfers)


def test_a_report_that_is_written_again_is_one_entry_with_what_is_known_last(tmp_path, serve):
    report = Report("step", "planned", "first", plan=plan_of())
    report.entry = writer.write_report(report, tmp_path)
    report.status, report.reason = "rolled_back", "measured, and not better"
    assert writer.write_report(report, tmp_path, report.entry) == report.entry
    (found,), problems = serve(tmp_path).plans()
    assert problems == []
    assert (found["status"], found["reason"]) == ("rolled_back", "measured, and not better")
    assert len(assets(tmp_path, "plan.json")) == 1


def test_several_runs_below_one_directory(tmp_path, serve):
    for run in ("first", "second/inner"):
        tf_regal.write_plan(plan_of(), tmp_path / run)
    server = serve(tmp_path)
    plans, _ = server.plans()
    assert {p["run"].partition("/tf_regal/")[0] for p in plans} == {"first", "second/inner"}
    for plan in plans:
        assert server.get("piece", id=plan["id"], name="overview.json").status_code == 200


def test_other_methods_are_refused(logdir, serve):
    server = serve(logdir)
    for route in ("plans", "piece", "download", "static/main.js"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            response = server.get(route, method=method)
            assert response.status_code == 405, (route, method)
            assert "GET" in response.headers["Allow"]
    assert server.get("plans", method="HEAD").status_code == 200


@pytest.mark.parametrize("name", page.MODULES)
def test_static_files(tmp_path, serve, name):
    response = serve(tmp_path).get(f"static/{name}")
    assert response.status_code == 200
    assert response.mimetype == "text/javascript"
    assert response.data.decode() == (page.static_files() / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [
    "static/../plugin.py", "static/..%2fplugin.py", "static/%2e%2e/plugin.py", "static/main.js/../../plugin.py", "static/missing.js", "static/",
    "static//etc/passwd",
])  # fmt: skip
def test_nothing_else_is_served(tmp_path, serve, path):
    assert serve(tmp_path).get(path).status_code == 404


SECRET = "a secret outside the log directory"


@pytest.mark.parametrize("identity", [
    "../../secret", "..", "../secret", "%2e%2e/secret", "/etc/passwd", "a/../../secret", "", "x" * 65, "a\0b", "secret.plan.json", "~root", "*",
])  # fmt: skip
def test_no_path_leads_out_of_the_log_directory(tmp_path, serve, identity):
    log = tmp_path / "log"
    tf_regal.write_plan(plan_of(), log)
    for directory in (tmp_path, log, log / "plugins"):
        (directory / "secret.plan.json").write_text(SECRET, encoding="utf-8")
    server = serve(log)
    for query in ({"name": "overview.json"}, {"what": "plan"}):
        response = server.get("piece" if "name" in query else "download", id=identity, **query)
        assert response.status_code == 404
        assert SECRET not in response.text
        assert str(tmp_path) not in response.text


def test_links_out_of_the_log_directory_are_not_followed(tmp_path, serve):
    log = tmp_path / "log"
    path = tf_regal.write_plan(plan_of(), log)
    outside = tmp_path / "outside.json"
    shutil.move(path, outside)
    identity = assets(log, "view.zip")[0].name.removesuffix(".view.zip")
    (log / metadata.ASSETS / f"{identity}.plan.json").symlink_to(outside)
    server = serve(log)
    assert server.get("download", id=identity, what="plan").status_code == 404
    (log / metadata.ASSETS / "evil.plan.json").symlink_to(outside)
    assert "evil" not in {plan["id"] for plan in server.plans()[0]}


def test_unknown_pieces_and_downloads(logdir, serve):
    server = serve(logdir)
    identity = server.plans()[0][0]["id"]
    for response in (server.get("piece", id=identity, name="version"), server.get("piece", id=identity, name="../x"), server.get("piece"),
                     server.get("download", id=identity, what="everything"), server.get("piece", id="never-written", name="overview.json")):  # fmt: skip
        assert response.status_code == 404
        assert response.json["error"]


# Damaged, too new, and missing assets.


def newer_zip(content):
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as new:
            new.writestr("version", str(chunks.VERSION + 1))
            for name in old.namelist():
                if name != "version":
                    new.writestr(name, old.read(name))
    return buffer.getvalue()


def endless_version(content):
    """A zip whose version is a hundred megabytes of digits."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("version", "9" * (100 << 20))
    return buffer.getvalue()


def bomb(content):
    """A zip whose directory says that a piece is larger than anything that is read."""
    at = content.rindex(b"overview.json")  # of the central directory
    header = content.rindex(b"PK\x01\x02", 0, at)
    return content[: header + 24] + struct.pack("<I", archive.MAX_PIECE + 1) + content[header + 28 :]


DAMAGE = {
    "half a file": (lambda c: c[: len(c) // 2], r"damaged"),
    "nothing in it": (lambda c: b"", r"damaged"),
    "no zip": (lambda c: b"\xff" * 1000, r"damaged"),
    "a newer version": (newer_zip, r"newer version of tf-regal.*update"),
    "too large": (bomb, r"larger than"),
    "an endless version": (endless_version, r"newer version"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_view_files_are_reported(logdir, serve, damage, message):
    for path in assets(logdir, "view.zip"):
        path.write_bytes(damage(path.read_bytes()))
    server = serve(logdir)
    plans, _ = server.plans()
    response = server.get("piece", id=plans[0]["id"], name="overview.json")
    assert response.status_code == 404
    assert re.search(message, response.json["error"])
    assert str(logdir) not in response.json["error"]


def test_without_a_view_file_the_pieces_are_made_of_the_plan(logdir, serve):
    for path in assets(logdir, "view.zip"):
        path.unlink()
    server = serve(logdir)
    identity = server.plans()[0][0]["id"]
    for name, content in chunks.chunks(plan_of(hostile=True)).items():
        assert server.get("piece", id=identity, name=name).data == content
    assert server.get("piece", id=identity, name="measured.bin").status_code == 404


def test_a_plan_that_was_removed_is_said_to_be(logdir, serve):
    shutil.rmtree(logdir / "plugins")
    server = serve(logdir)
    plans, problems = server.plans()
    assert len(plans) == 3
    assert problems == []
    response = server.get("piece", id=plans[0]["id"], name="overview.json")
    assert response.status_code == 404
    assert "was removed" in response.json["error"]


def test_a_plan_file_alone_is_shown_and_a_damaged_one_reported(tmp_path, serve):
    (tmp_path / metadata.ASSETS).mkdir(parents=True)
    plan_of().save(tmp_path / metadata.ASSETS / "copied.plan.json")
    (tmp_path / metadata.ASSETS / "broken.plan.json").write_text('{"sha256": "0", "data": {}}', encoding="utf-8")
    server = serve(tmp_path)
    plans, _ = server.plans()
    assert [(p["id"], p["has_plan"]) for p in plans] == [("copied", True), ("broken", False)]
    assert "checksum" in plans[1]["reason"]
    assert str(tmp_path) not in plans[1]["reason"]
    assert server.get("piece", id="copied", name="planned.bin").status_code == 200


def test_a_killed_writer_leaves_nothing_that_breaks_the_reader(logdir, serve):
    (events,) = logdir.glob("tf_regal/*/*tfevents*")
    whole = events.read_bytes()
    events.write_bytes(whole + whole[-300:-100])  # a record that was begun, and a temporary file of an asset
    (logdir / metadata.ASSETS / "x.plan.json.0123.tmp").write_text("{", encoding="utf-8")
    plans, problems = serve(logdir).plans()
    assert len(plans) == 3
    assert problems == []


def write_raw(logdir, content, payload):
    """A summary value of the plugin with any bytes."""
    import tensorflow as tf

    event = tf.compat.v1.Event(wall_time=1.0, step=0)
    value = event.summary.value.add(tag="raw")
    value.metadata.plugin_data.plugin_name = metadata.PLUGIN_NAME
    value.metadata.plugin_data.content = content
    value.metadata.data_class = 2
    value.tensor.CopyFrom(tf.make_tensor_proto(payload))
    with tf.io.TFRecordWriter(str(logdir / "events.out.tfevents.1.raw")) as file:
        file.write(tf.compat.v1.Event(file_version="brain.Event:2").SerializeToString())
        file.write(event.SerializeToString())


GOOD = json.dumps({"version": 1, "id": "a", "function": "f", "status": "skipped", "reason": "", "has_plan": False})
RAW = {
    "a newer format": (json.dumps({"version": metadata.VERSION + 1}).encode(), GOOD, "newer version"),
    "of another program": (b"\x08\x01", GOOD, "something else"),
    "not JSON": (metadata.content(), "{", "damaged"),
    "an id that is a path": (metadata.content(), GOOD.replace('"a"', '"../a"'), "damaged"),
    "a newer summary": (metadata.content(), GOOD.replace('"version": 1', '"version": 99'), "newer version"),
    "a plan without figures": (metadata.content(), GOOD.replace("false", "true"), "figures"),
    "too long": (metadata.content(), GOOD.replace('"f"', json.dumps("f" * (metadata.MAX_SUMMARY + 1))), "bytes"),
    "several": (metadata.content(), [GOOD, GOOD], "damaged"),
    "a number": (metadata.content(), 3.5, "damaged"),
    "a version that is none": (metadata.content(), GOOD.replace('"version": 1', '"version": "x"'), "damaged"),
    "nested too deeply": (metadata.content(), "[" * 100_000, "damaged"),
    "empty figures": (metadata.content(), GOOD.replace("false", 'true, "reason": "", "predicted": {}, "default": {}'), "figures"),
    "no status": (metadata.content(), GOOD.replace('"skipped"', "7"), "status"),
}


@pytest.mark.parametrize(("content", "payload", "message"), RAW.values(), ids=RAW)
def test_damaged_and_too_new_summaries_are_reported_beside_the_others(logdir, serve, content, payload, message):
    write_raw(logdir, content, payload)
    plans, problems = serve(logdir).plans()
    assert len(plans) == 3
    assert len(problems) == 1
    assert message in problems[0]


def test_without_a_log_directory_of_its_own_the_list_is_there_and_pieces_say_why_not(logdir, serve):
    server = serve(logdir, asset_logdir="")
    plans, _ = server.plans()
    response = server.get("piece", id=plans[0]["id"], name="overview.json")
    assert response.status_code == 404
    assert "--logdir_spec" in response.json["error"]


def test_the_tab(tmp_path, serve):
    server = serve(tmp_path)
    assert server.plans() == ([], [])
    frontend = server.plugin.frontend_metadata()
    assert (frontend.tab_name, frontend.es_module_path) == ("REGAL", "/static/main.js")
    assert server.plugin.data_plugin_names() == (metadata.PLUGIN_NAME,)


def test_pieces_are_what_the_reader_knows():
    assert set(chunks.chunks(plan_of())) <= set(archive.PIECES)


def test_plan_file_of_write_plan_can_be_loaded(tmp_path):
    path = tf_regal.write_plan(plan_of(), tmp_path / "new" / "directory")
    assert isinstance(tf_regal.load_plan(path), Plan)


def test_write_plan_with_something_else(tmp_path):
    with pytest.raises(tf_regal.errors.InvalidArgumentError, match=r"plan='p\.json' is not a tf_regal\.Plan.*load_plan"):
        tf_regal.write_plan("p.json", tmp_path)


def test_what_is_written_between_two_reloads_is_seen(tmp_path, serve):
    """By this process, which goes on in its file, and by another one."""
    writer.write_report(Report("first", "skipped", "why"), tmp_path)
    server = serve(tmp_path)
    again = writer.write_report(Report("second", "skipped", "why"), tmp_path)
    run_python(OTHER, tmp_path)
    server.reload()
    assert {p["function"] for p in server.plans()[0]} == {"first", "second", "third"}
    writer.write_report(Report("second", "failed", "more is known"), tmp_path, again)
    server.reload()
    plans, problems = server.plans()
    assert [p["reason"] for p in plans if p["function"] == "second"] == ["more is known"]
    assert len(plans) == 3
    assert problems == []


def test_a_log_directory_below_the_home_directory(logdir, serve, monkeypatch):
    monkeypatch.setenv("HOME", str(logdir.parent))
    server = serve(logdir, asset_logdir=f"~/{logdir.name}")
    identity = next(p["id"] for p in server.plans()[0] if p["has_plan"])
    assert server.get("piece", id=identity, name="overview.json").status_code == 200


OTHER = """
import sys
from tf_regal.plans import Report
from tf_regal.tensorboard import writer
writer.write_report(Report("third", "skipped", ""), sys.argv[1])
"""

FULL = """
import resource, signal, sys
from tf_regal.plans import Report
from tf_regal.tensorboard import writer
logdir = sys.argv[1]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer.write_report(Report("before", "skipped", ""), logdir)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
failures = 0
for i in range(5):
    try:
        writer.write_report(Report(f"lost {i}", "skipped", "a reason" * 50), logdir)
    except Exception:
        failures += 1
assert failures, "the limit was never reached"
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
writer.write_report(Report("after", "skipped", ""), logdir)
"""

FORK = """
import os, sys, threading
from tf_regal.plans import Report
from tf_regal.tensorboard import writer
writer.write_report(Report("parent", "skipped", ""), sys.argv[1])
writer._lock.acquire()  # as another thread would hold it that is writing
child = os.fork()
if child == 0:
    writer.write_report(Report("child", "skipped", ""), sys.argv[1])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
writer._lock.release()
writer.write_report(Report("parent again", "skipped", ""), sys.argv[1])
"""


def run_python(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_disk_that_was_full_for_a_while(tmp_path, serve):
    run_python(FULL, tmp_path)
    plans, _ = serve(tmp_path).plans()
    assert {"before", "after"} <= {p["function"] for p in plans}


def test_a_process_that_is_forked_while_its_parent_writes(tmp_path, serve):
    run_python(FORK, tmp_path)
    plans, problems = serve(tmp_path).plans()
    assert {p["function"] for p in plans} == {"parent", "child", "parent again"}
    assert problems == []
