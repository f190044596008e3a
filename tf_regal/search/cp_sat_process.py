"""CP-SAT in a process of its own: `ortools` and TensorFlow bring two builds of the same libraries, and a solve in a process that has loaded both crashes.

`python -m tf_regal.search.cp_sat_process` answers calls from stdin on stdout; nobody but `run` starts it. It stays for the next call, and ends with its parent.
"""

import dataclasses
import pickle
import subprocess
import sys
import tempfile
import threading

from tf_regal.search.task import Budget

_GRACE_S = 60.0  # beyond the seconds of the budget: imports, and making the model

_lock = threading.Lock()
_child = None


def run(task, budget, start, seconds):
    """`cp_sat.run` in the child process. Raises what it raises there; RuntimeError where the process itself fails."""
    global _child
    left = max(0.1, seconds - budget.elapsed)
    call = (dataclasses.replace(task, progress=None), budget.evaluations, left, start)
    with _lock:
        if _child is None or _child.process.poll() is not None:
            _child = _Child()
        result = _child.ask(call, left + _GRACE_S)
    if isinstance(result, Exception):
        raise result
    if task.progress is not None:
        task.progress(result.evaluations)
    return result


class _Child:
    def __init__(self):
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
        self.process = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)

    def ask(self, call, timeout):
        timer = threading.Timer(timeout, self.process.kill)
        timer.daemon = True
        timer.start()
        try:
            pickle.dump(call, self.process.stdin)
            self.process.stdin.flush()
            return pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError) as error:
            code = self.process.wait()
            self._log.seek(0)
            raise RuntimeError(f"the constraint solver's process ended with {code}: {self._log.read().decode(errors='replace')[-2000:]}") from error
        finally:
            timer.cancel()


def _serve():
    from tf_regal.search import cp_sat

    while True:
        try:
            task, evaluations, seconds, start = pickle.load(sys.stdin.buffer)
        except EOFError:  # the parent has ended
            return
        try:
            result = cp_sat.run(task, Budget(evaluations, seconds, threads=1), start)
        except Exception as error:
            result = error
        pickle.dump(result, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
