"""Numbers with units, tables, files."""

import os

import pytest

from tf_regal import errors
from tf_regal.cli import output


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.000 kB"), (1_572_864, "1.573 MB"), (999_999, "1.000 MB"),
        (None, "unlimited"),
        (16 * 2**30, "17.18 GB"), (123_456_789, "123.5 MB"), (2**63 - 1, "9223 PB"), (-72_032, "-72.03 kB"),
    ],
)  # fmt: skip
def test_bytes(count, text):
    assert output.byte_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (4e-7, "400 ns"),
        (1e-6, "1.000 us"),
        (0.00293, "2.930 ms"),
        (0.99996, "1.000 s"),
        (1234.5, "1234 s"),
    ],
)
def test_times(seconds, text):
    assert output.time_text(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(1.555e12, "1.555 TB/s"), (204.8e9, "204.8 GB/s"), (None, "free"), (12.5, "12.50 B/s")]
)
def test_rates(rate, text):
    assert output.rate_text(rate, "B/s") == text


def test_percent():
    assert output.percent_text(-0.27235) == "-27.2 %"
    assert output.percent_text(0.5) == "+50.0 %"
    assert output.percent_text(None) == "-"


def test_table_is_aligned():
    text = output.table([("name", "n"), ("a", "100"), ("longer name", "1")])
    assert text.splitlines() == ["  name           n", "  a            100", "  longer name    1"]


def test_write_bytes_leaves_the_old_file_where_it_fails(tmp_path):
    path = tmp_path / "file"
    output.write_bytes(str(path), b"old")
    with pytest.raises(TypeError):
        output.write_bytes(str(path), "not bytes")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_check_file_where_nothing_can_be_written(tmp_path, monkeypatch):
    output.check_file("-o", str(tmp_path / "new"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(errors.InvalidArgumentError, match=r"argument -o: .* cannot be written to"):
        output.check_file("-o", str(tmp_path / "new"))
