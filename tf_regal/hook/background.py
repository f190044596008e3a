"""Planning in a thread of its own, one function after the other."""

import queue
import threading
import weakref

_todo = queue.SimpleQueue()
_lock = threading.Lock()
_worker = None


def submit(owner, method, *args):
    """Calls owner.method(*args) later, unless `owner` is gone by then. Returns whether it will: at the end of the program nothing starts any more."""
    global _worker
    with _lock:
        if not threading.main_thread().is_alive():
            return False
        _todo.put((weakref.ref(owner), method, args))
        if _worker is None or not _worker.is_alive():
            # Not a daemon: Python would end while native code runs. What waits is dropped at the end, and what runs is waited for.
            _worker = threading.Thread(target=_work, name="tf_regal planning", daemon=False)
            _worker.start()
    return True


def _work():
    global _worker
    while True:
        with _lock:
            if _todo.empty():
                _worker = None
                return
            owner, method, args = _todo.get()
        alive = owner() if threading.main_thread().is_alive() else None
        if alive is not None:
            getattr(alive, method)(*args)
        # Nothing of one function is kept while the next one is planned.
        del owner, method, args, alive


def wait():
    """Returns when everything that was submitted is done."""
    while True:
        with _lock:
            worker = _worker
        if worker is None:
            return
        worker.join()
