// The core by itself, without Python: figures worked out by hand, the same result on any number of threads, and errors.
// The rules of docs/simulator.md one by one are tested from Python (test_*.py beside this file).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tf_regal/ops/brkga.h"
#include "tf_regal/ops/simulator.h"

namespace tf_regal {
namespace {

int failures = 0;

template <typename T>
std::string Text(const T& value) {
  return std::to_string(value);
}
template <typename T>
std::string Text(const std::vector<T>& values) {
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? ", " : "") + Text(value);
  return text + "]";
}

#define CHECK_EQ(actual, expected)                                                                               \
  do {                                                                                                           \
    const auto a_ = (actual);                                                                                    \
    const decltype(a_) e_ = (expected);                                                                          \
    if (!(a_ == e_)) {                                                                                           \
      ++failures;                                                                                                \
      std::fprintf(stderr, "%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #actual, Text(a_).c_str(), Text(e_).c_str()); \
    }                                                                                                            \
  } while (false)

#define CHECK_TRUE(condition)                                                     \
  do {                                                                            \
    if (!(condition)) {                                                           \
      ++failures;                                                                 \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                             \
  } while (false)

// The body must throw Error with this text somewhere in its message.
template <typename Error>
void CheckThrows(int line, const std::string& text, const std::function<void()>& body) {
  std::string got = "nothing thrown";
  try {
    body();
  } catch (const Error& error) {
    got = error.what();
  } catch (const std::exception& error) {
    got = std::string("another error: ") + error.what();
  }
  if (got.rfind("another error", 0) == 0 || got.find(text) == std::string::npos) {
    ++failures;
    std::fprintf(stderr, "%s:%d: expected an error with '%s', got: %s\n", __FILE__, line, text.c_str(), got.c_str());
  }
}
#define CHECK_INVALID(text, body) CheckThrows<std::invalid_argument>(__LINE__, text, [&] { body; })

// A problem under construction. Every op is a group of its own with one output, and takes the same time on all devices.
struct Builder {
  Problem p;

  explicit Builder(int devices) {
    p.n_devices = devices;
    p.lanes.assign(devices, 1);
    p.capacity.assign(devices, int64_t{1} << 40);
    p.latency.assign(devices * devices, 3);
    p.ns_per_byte.assign(devices * devices, 0.1);
  }

  void Op(int64_t duration, int64_t size, std::vector<int32_t> inputs, uint8_t lifetime = kLifetimeNormal) {
    for (int q = 0; q < p.n_devices; ++q) {
      p.duration.push_back(duration);
      p.scratch.push_back(0);
    }
    p.persistent.push_back(0);
    p.group.push_back(p.n_ops);
    p.producer.push_back(p.n_ops++);
    p.view.push_back(-1);
    p.size.push_back(size);
    p.lifetime.push_back(lifetime);
    p.reuse.ptr.push_back(0);
    p.inputs.idx.insert(p.inputs.idx.end(), inputs.begin(), inputs.end());
    p.inputs.ptr.push_back(static_cast<int32_t>(p.inputs.idx.size()));
    p.control.ptr.push_back(0);
    ++p.n_tensors;
  }
};

// 0 → 1, 0 → 2, both → 3.
Problem Diamond(int devices) {
  Builder b(devices);
  b.Op(10, 100, {});
  b.Op(5, 50, {0});
  b.Op(7, 30, {0});
  b.Op(2, 8, {1, 2}, kLifetimeOutput);
  return b.p;
}

// Layers of ops with two inputs from the layers before; sizes and durations from a small generator.
Problem Layers(int devices, int layers, int width) {
  Builder b(devices);
  uint32_t state = 1;
  auto next = [&state](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  for (int layer = 0; layer < layers; ++layer) {
    for (int i = 0; i < width; ++i) {
      std::vector<int32_t> inputs;
      if (layer > 0) {
        const uint32_t before = layer * width;
        const int32_t first = next(before), second = next(before);
        inputs.push_back(first);
        if (second != first) inputs.push_back(second);
      }
      b.Op(5 + next(40), 10 * next(30), inputs, layer + 1 == layers ? kLifetimeOutput : kLifetimeNormal);
    }
  }
  return b.p;
}

Evaluation Run(const Simulator& simulator, const std::vector<int32_t>& device, const std::vector<float>& priority,
               Timeline* timeline = nullptr) {
  const Candidate candidate{device.data(), priority.data(), nullptr};
  simulator.CheckCandidate(candidate);
  Workspace workspace;
  Evaluation result;
  simulator.Evaluate(candidate, &workspace, &result, timeline);
  return result;
}

void TestOneDevice() {
  const Simulator simulator(Diamond(1));
  const Evaluation result = Run(simulator, {0, 0, 0, 0}, {0, 0, 0, 0});
  CHECK_EQ(result.makespan, 10 + 5 + 7 + 2);
  CHECK_EQ(result.peak, (std::vector<int64_t>{100 + 50 + 30}));  // while op 2 runs; op 3 runs after tensor 0 is freed
  CHECK_EQ(result.transfer_bytes, 0);
  CHECK_EQ(result.excess, 0);
  CHECK_EQ(simulator.problem().Bounds().first, 24);
}

void TestPriorityDecidesTheOrder() {
  const Simulator simulator(Diamond(1));
  Timeline timeline;
  Run(simulator, {0, 0, 0, 0}, {0, 1, 2, 0}, &timeline);
  CHECK_EQ(timeline.start_order, (std::vector<int32_t>{0, 2, 1, 3}));
  CHECK_EQ(timeline.start, (std::vector<int64_t>{0, 17, 10, 22}));
}

void TestTwoDevices() {
  const Simulator simulator(Diamond(2));
  Timeline timeline;
  const Evaluation result = Run(simulator, {0, 0, 1, 0}, {0, 0, 0, 0}, &timeline);
  // Tensor 0 travels 10 … 23 (3 + 100 / 10 ns), op 2 runs 23 … 30, its output travels 30 … 36, op 3 runs 36 … 38.
  CHECK_EQ(timeline.start, (std::vector<int64_t>{0, 10, 23, 36}));
  CHECK_EQ(timeline.end, (std::vector<int64_t>{10, 15, 30, 38}));
  CHECK_EQ(timeline.transfers.size(), 2u);
  CHECK_EQ(result.makespan, 38);
  CHECK_EQ(result.transfer_bytes, 100 + 30);
  CHECK_EQ(result.peak, (std::vector<int64_t>{100 + 50, 100 + 30}));
}

void TestExcess() {
  Problem p = Diamond(2);
  p.capacity = {140, 130};
  CHECK_EQ(Run(Simulator(p), {0, 0, 1, 0}, {0, 0, 0, 0}).excess, 10);
}

void TestBrkgaFindsTheOptimum() {
  const Simulator simulator(Diamond(2));
  Brkga brkga(&simulator, {}, {});
  brkga.Evolve(500);
  CHECK_EQ(brkga.evaluations(), 500);
  CHECK_EQ(brkga.Best().evaluation.makespan, 24);  // moving a tensor costs more than it saves

  BrkgaOptions options;
  options.objective = Objective::kPeakMemory;
  Brkga memory(&simulator, options, {});
  memory.Evolve(500);
  const Evaluation best = memory.Best().evaluation;
  CHECK_EQ(std::max(best.peak[0], best.peak[1]), 100 + 50);  // the input and the output of op 1, wherever op 2 is
}

void TestThreadsDoNotMatter() {
  const Simulator simulator(Layers(3, 8, 6));
  for (const Objective objective : {Objective::kRuntime, Objective::kPeakMemory}) {
    BrkgaOptions options;
    options.objective = objective;
    options.seed = 7;
    Brkga alone(&simulator, options, {});
    alone.Evolve(2000);
    const Solution expected = alone.Best();
    CHECK_TRUE(alone.history().back()[0] < alone.history().front()[0]);  // it searches at all
    for (const int threads : {2, 5}) {
      options.threads = threads;
      Brkga together(&simulator, options, {});
      together.Evolve(options.population);  // cut into two calls, at a whole generation
      together.Evolve(2000);
      const Solution got = together.Best();
      CHECK_EQ(got.device, expected.device);
      CHECK_EQ(got.priority, expected.priority);
      CHECK_EQ(got.transfer_priority, expected.transfer_priority);
      CHECK_EQ(got.evaluation.makespan, expected.evaluation.makespan);
      CHECK_EQ(got.evaluation.peak, expected.evaluation.peak);
      CHECK_TRUE(together.history() == alone.history());
    }
  }
}

void TestSeedIsKept() {
  const Simulator simulator(Layers(3, 8, 6));
  BrkgaOptions options;
  Brkga first(&simulator, options, {});
  first.Evolve(3000);
  const Solution found = first.Best();
  options.seed = 1;
  Brkga second(&simulator, options, {{found.device, found.priority, found.transfer_priority}});
  second.Evolve(options.population);
  CHECK_TRUE(second.Best().evaluation.makespan <= found.evaluation.makespan);
}

void TestInvalidProblems() {
  auto made = [](const std::function<void(Problem*)>& spoil) {
    Problem p = Diamond(2);
    spoil(&p);
    const Simulator simulator(p);
  };
  CHECK_INVALID("cycle", made([](Problem* p) {
                  p->control.idx = {3};  // op 3 before op 0
                  p->control.ptr = {0, 1, 1, 1, 1};
                }));
  CHECK_INVALID("size", made([](Problem* p) { p->size[1] = -1; }));
  CHECK_INVALID("producer", made([](Problem* p) { p->producer[1] = 4; }));
  CHECK_INVALID("duration", made([](Problem* p) { p->duration[2] = p->duration[3] = -1; }));
  CHECK_INVALID("lanes", made([](Problem* p) { p->lanes[0] = 0; }));
  CHECK_INVALID("input", made([](Problem* p) { p->inputs.idx[0] = 99; }));
  CHECK_INVALID("latency", made([](Problem* p) { p->latency.pop_back(); }));
}

void TestInvalidCandidates() {
  const Simulator simulator(Diamond(2));
  CHECK_INVALID("device", Run(simulator, {0, 0, 2, 0}, {0, 0, 0, 0}));
  CHECK_INVALID("device", Run(simulator, {0, -1, 0, 0}, {0, 0, 0, 0}));
  CHECK_INVALID("priority", Run(simulator, {0, 0, 0, 0}, {0, std::nanf(""), 0, 0}));
}

void TestInvalidOptions() {
  const Simulator simulator(Diamond(2));
  auto made = [&](const std::function<void(BrkgaOptions*)>& spoil, std::vector<Seed> seeds = {}) {
    BrkgaOptions options;
    spoil(&options);
    const Brkga brkga(&simulator, options, std::move(seeds));
  };
  CHECK_INVALID("threads", made([](BrkgaOptions* o) { o->threads = 0; }));
  CHECK_INVALID("population", made([](BrkgaOptions* o) { o->population = 1; }));
  CHECK_INVALID("elites", made([](BrkgaOptions* o) { o->elites = o->population; }));
  CHECK_INVALID("rho", made([](BrkgaOptions* o) { o->rho = std::nan(""); }));
  CHECK_INVALID("seeds", made([](BrkgaOptions*) {}, {{{0}, {0}, {}}}));
  const Brkga idle(&simulator, {}, {});
  CheckThrows<std::logic_error>(__LINE__, "evolve", [&] { idle.Best(); });
}

}  // namespace
}  // namespace tf_regal

int main() {
  const std::vector<void (*)()> tests = {
      tf_regal::TestOneDevice,
      tf_regal::TestPriorityDecidesTheOrder,
      tf_regal::TestTwoDevices,
      tf_regal::TestExcess,
      tf_regal::TestBrkgaFindsTheOptimum,
      tf_regal::TestThreadsDoNotMatter,
      tf_regal::TestSeedIsKept,
      tf_regal::TestInvalidProblems,
      tf_regal::TestInvalidCandidates,
      tf_regal::TestInvalidOptions,
  };
  for (const auto test : tests) test();
  std::printf("core_test: %zu tests, %d failures\n", tests.size(), tf_regal::failures);
  return tf_regal::failures == 0 ? 0 : 1;
}
