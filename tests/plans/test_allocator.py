"""The twin of TensorFlow's BFC allocator, on cases worked out by hand, and on the allocator itself where it counts."""

import json
import subprocess
import sys

import pytest

from tf_regal.plans.allocator import BfcAllocator

KIB = 1 << 10


def test_sizes_are_rounded_up_to_256_bytes():
    allocator = BfcAllocator()
    allocator.allocate(1)
    assert allocator.in_use == 256
    allocator.allocate(257)
    assert allocator.in_use == 256 + 512


def test_a_free_chunk_is_split_only_where_it_is_twice_as_large():
    allocator = BfcAllocator()
    a, wall = allocator.allocate(400 * KIB), allocator.allocate(256)
    allocator.free(a)
    b = allocator.allocate(201 * KIB)  # more than half: gets the whole chunk
    assert b == a
    assert allocator.in_use == 400 * KIB + 256
    allocator.free(b)
    c = allocator.allocate(200 * KIB)  # half: split
    assert c == a
    assert allocator.in_use == 200 * KIB + 256
    assert allocator.allocate(200 * KIB) == a + 200 * KIB  # the rest is free
    assert wall == a + 400 * KIB


def test_the_smallest_chunk_that_fits_is_taken():
    allocator = BfcAllocator()
    large, _, small, _ = (allocator.allocate(s * KIB) for s in (300, 1, 200, 1))
    allocator.free(large)
    allocator.free(small)
    assert allocator.allocate(180 * KIB) == small


def test_neighbours_are_joined_when_freed():
    allocator = BfcAllocator()
    a, b, c, _ = (allocator.allocate(100 * KIB) for _ in range(4))
    for address in (a, c, b):
        allocator.free(address)
    assert allocator.allocate(300 * KIB) == a


def test_regions_grow_by_doubling():
    allocator = BfcAllocator()
    address = allocator.allocate(10 << 20)  # 2 MiB, doubled until it fits: 16 MiB, less than twice what was asked for
    assert allocator.in_use == 16 << 20
    allocator.free(address)
    assert allocator.in_use == 0
    assert allocator.peak == 16 << 20


PROGRAM = """
import json
import tensorflow as tf

SIZES = [400, 300, 900, 500, 700, 300, 1200, 350]
buffers, used = {}, []
base = tf.config.experimental.get_memory_info("CPU:0")["current"]
for step, size in enumerate(SIZES):
    buffers[step] = tf.fill((size * 256,), 1.0)
    if step % 2:
        del buffers[step - 1]
    used.append(tf.config.experimental.get_memory_info("CPU:0")["current"] - base)
print(json.dumps([SIZES, used]))
"""


@pytest.mark.slow
def test_as_tensorflow_counts(tmp_path):
    """The same sequence in TensorFlow's allocator and in the twin; both start empty."""
    environment = {"PATH": "", "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "HOME": str(tmp_path), "TF_ENABLE_ONEDNN_OPTS": "0"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    sizes, used = json.loads(run.stdout.splitlines()[-1])
    allocator, held, expected = BfcAllocator(), {}, []
    for step, size in enumerate(sizes):
        held[step] = allocator.allocate(size * KIB)
        if step % 2:
            allocator.free(held.pop(step - 1))
        expected.append(allocator.in_use)
    # The process has allocated and freed before: its free chunks differ by what was left over.
    assert used == pytest.approx(expected, rel=0.1)
