// The Python module tf_regal.ops._core: numpy arrays in, numpy arrays out. std::invalid_argument becomes ValueError.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "brkga.h"
#include "estimator.h"
#include "heuristics.h"
#include "local_search.h"
#include "partition.h"
#include "simulator.h"

namespace py = pybind11;

namespace tf_regal {
namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <typename T>
std::vector<T> ToVector(const py::handle& object, const char* name) {
  const Array<T> array = py::cast<Array<T>>(object.attr(name));
  return std::vector<T>(array.data(), array.data() + array.size());
}

template <typename T>
py::array_t<T> ToArray(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

// Whole numbers that fit int32, of the given length; nothing is cut or rounded silently.
std::vector<int32_t> ToIndices(const py::handle& object, const char* name, py::ssize_t length) {
  const py::array given = py::cast<py::array>(object);
  const char kind = given.dtype().kind();
  if (kind != 'i' && kind != 'u') throw std::invalid_argument(std::string(name) + " must hold whole numbers");
  if (given.ndim() != 1 || given.size() != length) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(given.size()) + " elements; expected one dimension of " + std::to_string(length));
  }
  const Array<int64_t> wide = py::cast<Array<int64_t>>(given);
  std::vector<int32_t> result(length);
  for (py::ssize_t i = 0; i < length; ++i) {
    const int64_t value = wide.data()[i];
    if (value < INT32_MIN || value > INT32_MAX) {
      throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(value) + ", out of range");
    }
    result[i] = static_cast<int32_t>(value);
  }
  return result;
}

template <typename T>
std::vector<T> ToTable(const py::handle& object, const char* name, py::ssize_t rows, py::ssize_t columns) {
  const Array<T> array = py::cast<Array<T>>(object);
  if (array.ndim() != 2 || array.shape(0) != rows || array.shape(1) != columns) {
    throw std::invalid_argument(std::string(name) + " has the wrong shape; expected [" + std::to_string(rows) + ", " + std::to_string(columns) + "]");
  }
  return std::vector<T>(array.data(), array.data() + array.size());
}

Problem ToProblem(const py::handle& object) {
  Problem p;
  p.persistent = ToVector<int64_t>(object, "persistent");
  p.group = ToVector<int32_t>(object, "group");
  p.producer = ToVector<int32_t>(object, "producer");
  p.view = ToVector<int32_t>(object, "view");
  p.size = ToVector<int64_t>(object, "size");
  p.lifetime = ToVector<uint8_t>(object, "lifetime");
  p.reuse = {ToVector<int32_t>(object, "reuse_ptr"), ToVector<int32_t>(object, "reuse_idx")};
  p.inputs = {ToVector<int32_t>(object, "input_ptr"), ToVector<int32_t>(object, "input_idx")};
  p.control = {ToVector<int32_t>(object, "control_ptr"), ToVector<int32_t>(object, "control_idx")};
  p.lanes = ToVector<int32_t>(object, "lanes");
  p.capacity = ToVector<int64_t>(object, "capacity");
  p.blocking_transfers = py::cast<bool>(object.attr("blocking_transfers"));
  const size_t limit = INT32_MAX / 2;
  if (p.group.size() > limit || p.producer.size() > limit || p.lanes.size() > limit) {
    throw std::invalid_argument("more than 2^30 ops, tensors or devices");
  }
  p.n_ops = static_cast<int>(p.group.size());
  p.n_tensors = static_cast<int>(p.producer.size());
  p.n_devices = static_cast<int>(p.lanes.size());
  p.duration = ToTable<int64_t>(object.attr("duration"), "duration", p.n_ops, p.n_devices);
  p.scratch = ToTable<int64_t>(object.attr("scratch"), "scratch", p.n_ops, p.n_devices);
  p.latency = ToTable<int64_t>(object.attr("latency"), "latency", p.n_devices, p.n_devices);
  p.ns_per_byte = ToTable<double>(object.attr("ns_per_byte"), "ns_per_byte", p.n_devices, p.n_devices);
  if (static_cast<uint64_t>(p.n_tensors) * p.n_devices > limit) throw std::invalid_argument("more than 2^30 tensors times devices");
  return p;
}

void CheckLength(const char* name, py::ssize_t actual, py::ssize_t expected) {
  if (actual != expected) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(actual) + " elements; expected " + std::to_string(expected));
  }
}

Discipline ParseDiscipline(const std::string& name) {
  if (name == "priority") return Discipline::kPriority;
  if (name == "fifo") return Discipline::kFifo;
  if (name == "lifo") return Discipline::kLifo;
  throw std::invalid_argument("discipline is '" + name + "'; expected 'priority', 'fifo' or 'lifo'");
}

py::array_t<int64_t> TransfersArray(const std::vector<Transfer>& transfers) {
  py::array_t<int64_t> result({static_cast<py::ssize_t>(transfers.size()), py::ssize_t{5}});
  auto rows = result.mutable_unchecked<2>();
  for (size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& x = transfers[i];
    const int64_t row[5] = {x.tensor, x.src, x.dst, x.start, x.end};
    for (int j = 0; j < 5; ++j) rows(i, j) = row[j];
  }
  return result;
}

py::array_t<int64_t> AllocationsArray(const std::vector<Allocation>& allocations) {
  py::array_t<int64_t> result({static_cast<py::ssize_t>(allocations.size()), py::ssize_t{4}});
  auto rows = result.mutable_unchecked<2>();
  for (size_t i = 0; i < allocations.size(); ++i) {
    const Allocation& x = allocations[i];
    const int64_t row[4] = {x.time, x.device, x.buffer, x.bytes};
    for (int j = 0; j < 4; ++j) rows(i, j) = row[j];
  }
  return result;
}

py::list MemoryArrays(const Timeline& timeline) {
  py::list result;
  for (const auto& steps : timeline.memory) {
    py::array_t<int64_t> array({static_cast<py::ssize_t>(steps.size()), py::ssize_t{2}});
    auto rows = array.mutable_unchecked<2>();
    for (size_t i = 0; i < steps.size(); ++i) {
      rows(i, 0) = steps[i].first;
      rows(i, 1) = steps[i].second;
    }
    result.append(array);
  }
  return result;
}

void SetFigures(const Evaluation& e, py::object* result) {
  result->attr("makespan") = e.makespan;
  result->attr("peak") = ToArray(e.peak);
  result->attr("transfer_bytes") = e.transfer_bytes;
  result->attr("feasible") = e.excess == 0;
}

py::object NewNamespace() { return py::module_::import("types").attr("SimpleNamespace")(); }

py::object RunCandidate(const Simulator& simulator, const py::object& device_array, const Array<float>& priority,
                        const py::object& transfer_priority, const std::string& discipline, bool with_timeline) {
  const Problem& p = simulator.problem();
  const std::vector<int32_t> device = ToIndices(device_array, "device", p.n_ops);
  CheckLength("priority", priority.size(), p.n_ops);
  Candidate candidate{device.data(), priority.data(), nullptr, ParseDiscipline(discipline)};
  std::vector<float> transfers;
  if (!transfer_priority.is_none()) {
    transfers = ToTable<float>(transfer_priority, "transfer_priority", p.n_tensors, p.n_devices);
    candidate.transfer_priority = transfers.data();
  }
  Workspace workspace;
  Evaluation evaluation;
  Timeline timeline;
  {
    py::gil_scoped_release release;
    simulator.CheckCandidate(candidate);
    simulator.Evaluate(candidate, &workspace, &evaluation, with_timeline ? &timeline : nullptr);
  }
  py::object result = NewNamespace();
  SetFigures(evaluation, &result);
  if (with_timeline) {
    result.attr("device") = ToArray(device);
    result.attr("start") = ToArray(timeline.start);
    result.attr("end") = ToArray(timeline.end);
    result.attr("start_order") = ToArray(timeline.start_order);
    result.attr("transfers") = TransfersArray(timeline.transfers);
    result.attr("memory") = MemoryArrays(timeline);
    result.attr("allocations") = AllocationsArray(timeline.allocations);
  }
  return result;
}

std::vector<Seed> ToSeeds(const Problem& p, const py::iterable& seeds) {
  std::vector<Seed> result;
  auto vector = [](const auto& array) { return std::vector(array.data(), array.data() + array.size()); };
  for (const py::handle& item : seeds) {
    const py::tuple seed = py::cast<py::tuple>(item);
    if (seed.size() != 3) throw std::invalid_argument("seeds: each is (device, priority, transfer_priority or None)");
    Seed s{ToIndices(seed[0], "seeds: device", p.n_ops), vector(py::cast<Array<float>>(seed[1])), {}};
    if (!seed[2].is_none()) s.transfer_priority = ToTable<float>(seed[2], "seeds: transfer_priority", p.n_tensors, p.n_devices);
    result.push_back(std::move(s));
  }
  return result;
}

Proposal ToProposal(const py::object& proposal) {
  Proposal result;
  if (proposal.is_none()) return result;
  const py::tuple pair = py::cast<py::tuple>(proposal);
  if (pair.size() != 2) throw std::invalid_argument("proposal: expected (choice, table)");
  const auto choice = py::cast<Array<uint16_t>>(pair[0]);
  const auto table = py::cast<Array<float>>(pair[1]);
  if (choice.ndim() != 1 || table.ndim() != 2) throw std::invalid_argument("proposal: expected choice with one dimension and a table with two");
  result.choice.assign(choice.data(), choice.data() + choice.size());
  result.table.assign(table.data(), table.data() + table.size());
  result.points = static_cast<int>(table.shape(1));
  return result;
}

Objective ParseObjective(const std::string& name) {
  if (name == "runtime") return Objective::kRuntime;
  if (name == "peak_memory") return Objective::kPeakMemory;
  throw std::invalid_argument("objective is '" + name + "'; expected 'runtime' or 'peak_memory'");
}

int64_t ToLimit(const py::object& makespan_limit) {
  if (makespan_limit.is_none()) return INT64_MAX;
  const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(makespan_limit.ptr()));
  int overflow = 0;
  const long long value = index ? PyLong_AsLongLongAndOverflow(index.ptr(), &overflow) : 0;
  if (!index || overflow != 0) {
    PyErr_Clear();
    throw std::invalid_argument("makespan_limit is " + std::string(py::repr(makespan_limit)) + "; expected a whole number of ns below 2^63, or None");
  }
  return value;
}

std::unique_ptr<LocalSearch> MakeLocalSearch(const Simulator& simulator, const std::string& objective, const py::object& makespan_limit,
                                             int chains, int memory, double slack, int64_t horizon, int proposals, bool hold, uint64_t seed, int threads,
                                             const py::iterable& starts) {
  LocalSearchOptions options;
  options.objective = ParseObjective(objective);
  options.makespan_limit = ToLimit(makespan_limit);
  options.chains = chains;
  options.memory = memory;
  options.slack = slack;
  options.horizon = horizon;
  options.proposals = proposals;
  options.hold = hold;
  options.seed = seed;
  options.threads = threads;
  return std::make_unique<LocalSearch>(&simulator, options, ToSeeds(simulator.problem(), starts));
}

// (ns, bytes): makespan and largest peak.
std::pair<int64_t, int64_t> EstimateSchedule(const Simulator& simulator, const Array<int32_t>& order, const Array<int32_t>& device, int32_t hold) {
  const Problem& p = simulator.problem();
  CheckLength("order", order.size(), p.n_ops);
  CheckLength("device", device.size(), p.n_ops);
  const std::vector<int32_t> ops(order.data(), order.data() + order.size()), devices(device.data(), device.data() + device.size());
  const std::vector<float> priority(p.n_ops);
  simulator.CheckCandidate({devices.data(), priority.data(), nullptr});
  std::vector<int32_t> sorted = ops;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < p.n_ops; ++i) {
    if (sorted[i] != i) throw std::invalid_argument("order is no permutation of the ops");
  }
  Estimator estimator(&p, Objective::kRuntime, INT64_MAX);
  Fitness bound;
  bound.fill(INT64_MAX);
  const Fitness estimate = estimator.Estimate(ops, devices, hold, bound);
  return {estimate[2], estimate[3]};
}

// One double per op, or none.
const double* PerOp(const Simulator& simulator, const char* name, const std::optional<Array<double>>& values) {
  if (!values) return nullptr;
  CheckLength(name, values->size(), simulator.problem().n_ops);
  return values->data();
}

py::array_t<int32_t> PartitionGraph(const Array<int32_t>& ptr, const Array<int32_t>& target, const Array<double>& edge_weight,
                                    const Array<double>& vertex_weight, const std::vector<double>& shares, double imbalance, uint64_t seed) {
  WeightedGraph graph;
  graph.vertex.assign(vertex_weight.data(), vertex_weight.data() + vertex_weight.size());
  graph.ptr.assign(ptr.data(), ptr.data() + ptr.size());
  graph.target.assign(target.data(), target.data() + target.size());
  graph.edge.assign(edge_weight.data(), edge_weight.data() + edge_weight.size());
  CheckLength("ptr", ptr.size(), graph.size() + 1);
  CheckLength("edge_weight", edge_weight.size(), static_cast<int>(target.size()));
  if (graph.ptr.front() != 0 || graph.ptr.back() != static_cast<int32_t>(target.size()) || !std::is_sorted(graph.ptr.begin(), graph.ptr.end())) {
    throw std::invalid_argument("ptr: expected rising numbers from 0 to the length of target");
  }
  for (int32_t v : graph.target) {
    if (v < 0 || v >= graph.size()) throw std::invalid_argument("target names vertex " + std::to_string(v) + "; expected 0 to " + std::to_string(graph.size() - 1));
  }
  double sum = 0;
  for (double share : shares) {
    if (!(share > 0)) throw std::invalid_argument("shares: expected positive numbers");
    sum += share;
  }
  if (shares.empty() || std::abs(sum - 1) > 1e-6) throw std::invalid_argument("shares: expected numbers with sum 1");
  if (!(imbalance >= 0)) throw std::invalid_argument("imbalance: expected 0 or more");
  return ToArray(Partition(graph, shares, imbalance, seed));
}

std::unique_ptr<Brkga> MakeBrkga(const Simulator& simulator, const std::string& objective, const py::object& makespan_limit,
                                 int population, int elites, int mutants, double rho, uint64_t seed, int threads,
                                 const py::iterable& seeds, const py::object& proposal, double proposal_share) {
  BrkgaOptions options;
  options.objective = ParseObjective(objective);
  options.makespan_limit = ToLimit(makespan_limit);
  options.population = population;
  options.elites = elites;
  options.mutants = mutants;
  options.rho = rho;
  options.proposal_share = proposal_share;
  options.seed = seed;
  options.threads = threads;
  return std::make_unique<Brkga>(&simulator, options, ToSeeds(simulator.problem(), seeds), ToProposal(proposal));
}

py::object TableOrNone(const std::vector<float>& values, py::ssize_t columns) {
  if (values.empty()) return py::none();
  py::array_t<float> result({static_cast<py::ssize_t>(values.size()) / columns, columns});
  std::copy(values.begin(), values.end(), result.mutable_data());
  return result;
}

template <typename Search>
py::object BestOf(const Search& search) {
  const Solution best = search.Best();
  py::object result = NewNamespace();
  SetFigures(best.evaluation, &result);
  result.attr("device") = ToArray(best.device);
  result.attr("priority") = ToArray(best.priority);
  result.attr("transfer_priority") = TableOrNone(best.transfer_priority, static_cast<py::ssize_t>(best.evaluation.peak.size()));
  result.attr("hold") = best.hold;
  return result;
}

py::array_t<double> HistoryOf(const Brkga& brkga) {
  const auto& history = brkga.history();
  py::array_t<double> result({static_cast<py::ssize_t>(history.size()), py::ssize_t{2}});
  for (size_t i = 0; i < history.size(); ++i) {
    result.mutable_at(i, 0) = history[i][0];
    result.mutable_at(i, 1) = history[i][1];
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.doc() = "Native core of tf-regal: the simulator and BRKGA over it.";

  py::class_<Simulator>(m, "Simulator")
      .def(py::init([](const py::object& problem) { return std::make_unique<Simulator>(ToProblem(problem)); }), py::arg("problem"))
      .def("run", &RunCandidate, py::arg("device"), py::arg("priority"), py::arg("transfer_priority") = py::none(),
           py::arg("discipline") = "priority", py::arg("timeline") = false)
      .def("bounds", [](const Simulator& s) { return s.problem().Bounds(); })
      .def_property_readonly("allowed", [](const Simulator& s) { return ToArray(s.problem().allowed); })
      .def_property_readonly("topological_order", [](const Simulator& s) { return ToArray(s.problem().topological_order); });

  m.def("upward_rank", [](const Simulator& s, double transfer_weight) { return ToArray(UpwardRank(s.problem(), transfer_weight)); },
        py::arg("simulator"), py::arg("transfer_weight") = 1.0);
  m.def("downward_rank", [](const Simulator& s, double transfer_weight) { return ToArray(DownwardRank(s.problem(), transfer_weight)); },
        py::arg("simulator"), py::arg("transfer_weight") = 1.0);
  m.def("earliest_finish_placement", [](const Simulator& s, const Array<double>& rank) {
          return ToArray(EarliestFinishPlacement(s.problem(), PerOp(s, "rank", rank)));
        }, py::arg("simulator"), py::arg("rank"));
  m.def("earliest_start_schedule", [](const Simulator& s, const Array<double>& rank) {
          const auto [device, order] = EarliestStartSchedule(s.problem(), PerOp(s, "rank", rank));
          return py::make_tuple(ToArray(device), ToArray(order));
        }, py::arg("simulator"), py::arg("rank"));
  m.def("memory_greedy_order", [](const Simulator& s, const Array<double>& rank, const std::optional<Array<double>>& noise) {
          return ToArray(MemoryGreedyOrder(s.problem(), PerOp(s, "rank", rank), PerOp(s, "noise", noise)));
        }, py::arg("simulator"), py::arg("rank"), py::arg("noise") = py::none());
  m.def("depth_first_order", [](const Simulator& s, const std::optional<Array<double>>& noise) {
          return ToArray(DepthFirstOrder(s.problem(), PerOp(s, "noise", noise)));
        }, py::arg("simulator"), py::arg("noise") = py::none());

  m.def("partition", &PartitionGraph, py::arg("ptr"), py::arg("target"), py::arg("edge_weight"), py::arg("vertex_weight"), py::arg("shares"),
        py::arg("imbalance"), py::arg("seed") = 0);

  m.def("estimate_schedule", &EstimateSchedule, py::arg("simulator"), py::arg("order"), py::arg("device"), py::arg("hold") = 0);

  py::class_<LocalSearch>(m, "LocalSearch")
      .def(py::init(&MakeLocalSearch), py::keep_alive<1, 2>(), py::arg("simulator"), py::kw_only(), py::arg("objective"),
           py::arg("makespan_limit") = py::none(), py::arg("chains") = 4, py::arg("memory") = 10, py::arg("slack") = 0.0,
           py::arg("horizon") = 5000, py::arg("proposals") = 1, py::arg("hold") = false, py::arg("seed") = 0,
           py::arg("threads") = 1, py::arg("starts"))
      .def("improve", &LocalSearch::Improve, py::arg("evaluations"), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("evaluations", &LocalSearch::evaluations)
      .def_property_readonly("best", &BestOf<LocalSearch>);

  py::class_<Brkga>(m, "Brkga")
      .def(py::init(&MakeBrkga), py::keep_alive<1, 2>(), py::arg("simulator"), py::kw_only(), py::arg("objective"),
           py::arg("makespan_limit") = py::none(), py::arg("population") = 100, py::arg("elites") = 20, py::arg("mutants") = 15,
           py::arg("rho") = 0.7, py::arg("seed") = 0, py::arg("threads") = 1, py::arg("seeds") = py::tuple(),
           py::arg("proposal") = py::none(), py::arg("proposal_share") = 1.0)
      .def("evolve", &Brkga::Evolve, py::arg("evaluations"), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("evaluations", &Brkga::evaluations)
      .def_property_readonly("best", &BestOf<Brkga>)
      .def_property_readonly("history", &HistoryOf);
}

}  // namespace tf_regal
