#include "problem.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace tf_regal {
namespace {

// Sums of times and bytes stay below this, so that no addition in the simulator can overflow.
constexpr int64_t kMaxTotal = int64_t{1} << 61;

[[noreturn]] void Fail(const std::string& message) { throw std::invalid_argument(message); }

void CheckLength(const char* name, size_t actual, size_t expected) {
  if (actual != expected) {
    Fail(std::string(name) + " has " + std::to_string(actual) + " elements; expected " + std::to_string(expected));
  }
}

template <typename T>
void CheckRange(const char* name, const std::vector<T>& values, int64_t low, int64_t high) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < low || values[i] >= high) {
      Fail(std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(values[i]) + "; expected " +
           std::to_string(low) + " <= value < " + std::to_string(high));
    }
  }
}

template <typename T>
void CheckNotNegative(const char* name, const std::vector<T>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) {
      Fail(std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(values[i]) + "; it may not be negative");
    }
  }
}

void CheckCsr(const std::string& name, const Csr& csr, int rows, int columns) {
  CheckLength((name + "_ptr").c_str(), csr.ptr.size(), static_cast<size_t>(rows) + 1);
  if (csr.ptr.front() != 0 || csr.ptr.back() != static_cast<int64_t>(csr.idx.size())) {
    Fail(name + "_ptr must begin with 0 and end with the length of " + name + "_idx, " + std::to_string(csr.idx.size()));
  }
  for (int i = 0; i < rows; ++i) {
    if (csr.ptr[i] > csr.ptr[i + 1]) Fail(name + "_ptr[" + std::to_string(i + 1) + "] falls; it must not");
  }
  CheckRange((name + "_idx").c_str(), csr.idx, 0, columns);
  std::vector<int32_t> seen(columns, -1);
  for (int row = 0; row < rows; ++row) {
    for (const int32_t* j = csr.begin(row); j != csr.end(row); ++j) {
      if (seen[*j] == row) Fail(name + " lists " + std::to_string(*j) + " twice for " + std::to_string(row));
      seen[*j] = row;
    }
  }
}

}  // namespace

Csr Transpose(const Csr& csr, int columns) {
  Csr result;
  result.ptr.assign(columns + 1, 0);
  for (int32_t j : csr.idx) ++result.ptr[j + 1];
  for (int j = 0; j < columns; ++j) result.ptr[j + 1] += result.ptr[j];
  result.idx.resize(csr.idx.size());
  std::vector<int32_t> next(result.ptr.begin(), result.ptr.end() - 1);
  for (int row = 0; row < csr.rows(); ++row) {
    for (const int32_t* j = csr.begin(row); j != csr.end(row); ++j) result.idx[next[*j]++] = row;
  }
  return result;
}

void Problem::CheckShapes() const {
  if (n_devices < 1 || n_devices > kMaxDevices) {
    Fail("lanes names " + std::to_string(n_devices) + " devices; the core takes 1 to " + std::to_string(kMaxDevices));
  }
  const size_t n = n_ops, m = n_tensors, d = n_devices;
  CheckLength("duration", duration.size(), n * d);
  CheckLength("scratch", scratch.size(), n * d);
  CheckLength("persistent", persistent.size(), n);
  CheckLength("group", group.size(), n);
  CheckLength("size", size.size(), m);
  CheckLength("view", view.size(), m);
  CheckLength("lifetime", lifetime.size(), m);
  CheckLength("capacity", capacity.size(), d);
  CheckLength("latency", latency.size(), d * d);
  CheckLength("ns_per_byte", ns_per_byte.size(), d * d);
}

void Problem::CheckValues() const {
  CheckNotNegative("scratch", scratch);
  CheckNotNegative("persistent", persistent);
  CheckNotNegative("size", size);
  CheckNotNegative("capacity", capacity);
  CheckNotNegative("latency", latency);
  CheckRange("group", group, 0, std::max(n_ops, 1));
  CheckRange("producer", producer, 0, n_ops);
  CheckRange("view", view, -1, n_tensors);
  CheckRange("lifetime", lifetime, 0, 3);
  CheckRange("lanes", lanes, 1, int64_t{1} << 20);
  for (size_t i = 0; i < ns_per_byte.size(); ++i) {
    if (!(ns_per_byte[i] >= 0) || std::isinf(ns_per_byte[i])) {
      Fail("ns_per_byte[" + std::to_string(i) + "] is " + std::to_string(ns_per_byte[i]) + "; expected a finite number, 0 or more");
    }
  }
  CheckCsr("input", inputs, n_ops, n_tensors);
  CheckCsr("control", control, n_ops, n_ops);
  CheckCsr("reuse", reuse, n_tensors, n_tensors);
  auto is_input = [this](int tensor, int op) {
    return std::find(inputs.begin(op), inputs.end(op), tensor) != inputs.end(op);
  };
  for (int t = 0; t < n_tensors; ++t) {
    if (view[t] >= 0 && !is_input(view[t], producer[t])) {
      Fail("view[" + std::to_string(t) + "] is " + std::to_string(view[t]) + ", which is not an input of its producer, op " +
           std::to_string(producer[t]));
    }
    for (const int32_t* r = reuse.begin(t); r != reuse.end(t); ++r) {
      if (!is_input(*r, producer[t])) {
        Fail("reuse of tensor " + std::to_string(t) + " names " + std::to_string(*r) +
             ", which is not an input of its producer, op " + std::to_string(producer[t]));
      }
    }
  }
}

void Problem::CheckTotals() const {
  // Each tensor may have a copy, and each transfer its time, on every device.
  long double bytes = 0, time = 0;
  for (int64_t s : size) bytes += static_cast<long double>(s) * n_devices;
  for (int64_t s : scratch) bytes += s;
  for (int64_t s : persistent) bytes += s;
  if (bytes > kMaxTotal) Fail("size, scratch and persistent add up to more than 2^61 bytes (overflow)");
  for (int64_t x : duration) time += std::max<int64_t>(x, 0);
  const int64_t max_latency = latency.empty() ? 0 : *std::max_element(latency.begin(), latency.end());
  const double max_rate = ns_per_byte.empty() ? 0 : *std::max_element(ns_per_byte.begin(), ns_per_byte.end());
  time += static_cast<long double>(max_latency) * n_devices * (static_cast<long double>(n_tensors) + n_ops);
  time += bytes * max_rate;
  if (time > kMaxTotal) Fail("duration and the time of all transfers (latency, ns_per_byte) add up to more than 2^61 ns (overflow)");
}

void Problem::Finish() {
  CheckShapes();
  CheckValues();
  CheckTotals();

  outputs.ptr.assign(n_ops + 1, 0);
  for (int32_t p : producer) ++outputs.ptr[p + 1];
  for (int o = 0; o < n_ops; ++o) outputs.ptr[o + 1] += outputs.ptr[o];
  outputs.idx.resize(n_tensors);
  std::vector<int32_t> next(outputs.ptr.begin(), outputs.ptr.end() - 1);
  for (int t = 0; t < n_tensors; ++t) outputs.idx[next[producer[t]]++] = t;
  DropImpossibleReuse();
  consumers = Transpose(inputs, n_tensors);
  control_successors = Transpose(control, n_ops);
  n_predecessors.resize(n_ops);
  for (int o = 0; o < n_ops; ++o) n_predecessors[o] = inputs.size(o) + control.size(o);

  topological_order.clear();
  std::vector<int32_t> pending = n_predecessors;
  for (int o = 0; o < n_ops; ++o) {
    if (pending[o] == 0) topological_order.push_back(o);
  }
  for (size_t i = 0; i < topological_order.size(); ++i) {
    const int o = topological_order[i];
    auto release = [&](int successor) {
      if (--pending[successor] == 0) topological_order.push_back(successor);
    };
    for (const int32_t* t = outputs.begin(o); t != outputs.end(o); ++t) {
      std::for_each(consumers.begin(*t), consumers.end(*t), release);
    }
    std::for_each(control_successors.begin(o), control_successors.end(o), release);
  }
  if (static_cast<int>(topological_order.size()) != n_ops) {
    const auto stuck = std::find_if(pending.begin(), pending.end(), [](int32_t p) { return p > 0; });
    Fail("input and control edges contain a cycle, through or before op " + std::to_string(stuck - pending.begin()));
  }

  n_groups = 0;
  for (int32_t g : group) n_groups = std::max(n_groups, g + 1);
  const uint64_t all = n_devices == 64 ? ~uint64_t{0} : (uint64_t{1} << n_devices) - 1;
  allowed.assign(n_groups, all);
  for (int o = 0; o < n_ops; ++o) {
    for (int p = 0; p < n_devices; ++p) {
      if (duration[static_cast<size_t>(o) * n_devices + p] < 0) allowed[group[o]] &= ~(uint64_t{1} << p);
    }
    if (allowed[group[o]] == 0) {
      Fail("duration leaves no device that may run every op of group " + std::to_string(group[o]) + " (op " + std::to_string(o) +
           " is one of them)");
    }
  }
}

// A view of the input needs its bytes: nothing else may be written over them by the same op.
void Problem::DropImpossibleReuse() {
  Csr kept;
  for (int t = 0; t < n_tensors; ++t) {
    const int op = producer[t];
    for (const int32_t* r = reuse.begin(t); r != reuse.end(t); ++r) {
      const bool viewed = std::any_of(outputs.begin(op), outputs.end(op), [&](int32_t u) { return view[u] == *r; });
      if (!viewed) kept.idx.push_back(*r);
    }
    kept.ptr.push_back(static_cast<int32_t>(kept.idx.size()));
  }
  reuse = std::move(kept);
}

int64_t Problem::TransferTime(int tensor, int src, int dst) const {
  const size_t link = static_cast<size_t>(src) * n_devices + dst;
  return latency[link] + static_cast<int64_t>(std::ceil(static_cast<double>(size[tensor]) * ns_per_byte[link]));
}

}  // namespace tf_regal
