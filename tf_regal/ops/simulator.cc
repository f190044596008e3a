#include "simulator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace tf_regal {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxLinkClasses = 4;  // more tables than this would push everything else out of the caches

uint64_t Bit(int i) { return uint64_t{1} << i; }

template <typename T>
void PushHeap(std::vector<T>* heap, const T& item) {
  heap->push_back(item);
  std::push_heap(heap->begin(), heap->end(), std::greater<T>());
}

template <typename T>
T PopHeap(std::vector<T>* heap) {
  std::pop_heap(heap->begin(), heap->end(), std::greater<T>());
  const T item = heap->back();
  heap->pop_back();
  return item;
}

}  // namespace

// One evaluation. kDevices: 1, 2, or 0 for any number; kUsual: ready ops by priority, transfers beside compute; kTimeline: the
// timeline is recorded.
template <int kDevices, bool kUsual, bool kTimeline>
class Run {
 public:
  Run(const Simulator& simulator, const Candidate& candidate, Workspace* workspace, Evaluation* result, Timeline* timeline)
      : s_(simulator), p_(simulator.problem_), c_(candidate), w_(*workspace), r_(*result), tl_(timeline),
        n_devices_(p_.n_devices), ops_(w_.ops.data()), residences_(w_.residences.data()), next_(w_.next.data()),
        records_(s_.ops_.data()), tensors_(s_.tensors_.data()), consumers_(p_.consumers.idx.data()), duration_(p_.duration.data()),
        lanes_(p_.lanes.data()), running_(w_.running.data()), memory_(w_.memory.data()), peak_(w_.peak.data()) {}

  void Go() {
    Begin();
    for (;;) {
      HandleBatch();
      if (kMultiple) {
        StartTransfers();
        if (NextEvent() == now_) continue;
      }
      StartOps();
      const int64_t next = NextEvent();
      if (next == kNever) break;
      now_ = next;
    }
    r_.makespan = now_;
    r_.excess = 0;
    for (int q = 0; q < d(); ++q) r_.excess += std::max<int64_t>(0, peak_[q] - p_.capacity[q]);
    r_.peak.assign(w_.peak.begin(), w_.peak.end());
  }

 private:
  static constexpr bool kMultiple = kDevices != 1;
  using Ending = Workspace::Ending;
  using Residence = Workspace::Residence;

  constexpr int d() const { return kDevices ? kDevices : n_devices_; }
  bool blocking() const { return !kUsual && p_.blocking_transfers; }
  bool by_priority() const { return kUsual || c_.discipline == Discipline::kPriority; }
  int DeviceOf(int op) const { return kMultiple ? ops_[op].device : 0; }
  int ResidenceOf(int tensor, int device) const { return kMultiple ? tensor * d() + device : tensor; }
  int Link(int src, int dst) const { return src * d() + dst; }

  void Begin() {
    const int n = p_.n_ops;
    w_.arrivals = 0;
    w_.became_ready.clear();
    w_.signals.clear();
    r_.transfer_bytes = 0;
    startable_links_ = ready_devices_ = 0;
    for (int q = 0; q < d(); ++q) {
      w_.ready[q].Reset(n);
      w_.endings[q].clear();
      running_[q] = 0;
      memory_[q] = 0;
      w_.link_waiting[q] = w_.link_busy[q] = 0;
      w_.blocked_by[q] = 0;
    }
    std::fill(w_.next.begin(), w_.next.end(), kNever);
    if (by_priority() && c_.order) {
      for (int rank = 0; rank < n; ++rank) SetRank(c_.order[rank], rank);
    } else if (by_priority()) {
      const uint64_t* sorted = SortByPriority(c_.priority, n, w_.sort_a.data(), w_.sort_b.data());
      for (int rank = 0; rank < n; ++rank) SetRank(static_cast<int>(sorted[rank] & 0xffffffffu), rank);
    }
    for (int o = 0; o < n; ++o) {
      ops_[o].pending = records_[o].n_predecessors;
      ops_[o].device = kMultiple ? c_.device[o] : 0;
      memory_[DeviceOf(o)] += p_.persistent[o];
    }
    std::copy(w_.memory.begin(), w_.memory.end(), w_.peak.begin());
    if (kTimeline) {
      tl_->start.assign(n, -1);
      tl_->end.assign(n, -1);
      tl_->start_order.clear();
      tl_->transfers.clear();
      tl_->allocations.clear();
      tl_->memory.assign(d(), {});
      for (int q = 0; q < d(); ++q) tl_->memory[q].emplace_back(0, memory_[q]);
    }
    for (int op : s_.sources_) BecomeReady(op);
    FlushArrivals();
  }

  void SetRank(int op, int rank) {
    w_.op_at_rank[rank] = op;
    ops_[op].rank = rank;
  }

  int64_t NextEvent() const {
    int64_t first = next_[0];
    for (int i = 1; i < 2 * d() + 1; ++i) first = std::min(first, next_[i]);
    return first;
  }

  // What the batch itself schedules for this very time (signals over links without latency) belongs to the next one: so signals first.
  void HandleBatch() {
    if (kMultiple && next_[2 * d()] == now_) {
      while (!w_.signals.empty() && w_.signals.front().time == now_) {
        const Ending signal = PopHeap(&w_.signals);
        ArriveSignal(signal.id, signal.device);
      }
      next_[2 * d()] = w_.signals.empty() ? kNever : w_.signals.front().time;
    }
    for (int q = 0; q < d(); ++q) {
      if (next_[q] == now_) EndOps(q);
    }
    if (kMultiple) {
      for (int src = 0; src < d(); ++src) {
        if (next_[d() + src] == now_) EndTransfers(src);
      }
    }
    FlushArrivals();
  }

  void EndOps(int device) {
    if (lanes_[device] == 1) {
      next_[device] = kNever;
      EndOp(w_.only[device], device);
      return;
    }
    auto& endings = w_.endings[device];
    while (!endings.empty() && endings.front().time == now_) EndOp(PopHeap(&endings).id, device);
    next_[device] = endings.empty() ? kNever : endings.front().time;
  }

  void EndTransfers(int src) {
    int64_t next = kNever;
    for (uint64_t rest = w_.link_busy[src]; rest != 0; rest &= rest - 1) {
      const int dst = __builtin_ctzll(rest);
      if (w_.link_end[Link(src, dst)] == now_) {
        EndTransfer(w_.link_tensor[Link(src, dst)], src, dst);
      } else {
        next = std::min(next, w_.link_end[Link(src, dst)]);
      }
    }
    next_[d() + src] = next;
  }

  void BecomeReady(int op) {
    if (by_priority()) {
      w_.ready[DeviceOf(op)].Insert(ops_[op].rank);
      ready_devices_ |= Bit(DeviceOf(op));
    } else {
      w_.became_ready.push_back(op);
    }
  }

  // Fifo and lifo: the order of arrival is the rank. Within a batch it is the op's index, whatever the order of the batch.
  void FlushArrivals() {
    if (by_priority()) return;
    std::sort(w_.became_ready.begin(), w_.became_ready.end());
    for (int op : w_.became_ready) {
      const int rank = c_.discipline == Discipline::kFifo ? w_.arrivals : p_.n_ops - 1 - w_.arrivals;
      ++w_.arrivals;
      w_.op_at_rank[rank] = op;
      w_.ready[DeviceOf(op)].Insert(rank);
      ready_devices_ |= Bit(DeviceOf(op));
    }
    w_.became_ready.clear();
  }

  void Release(int op) {
    if (--ops_[op].pending == 0) BecomeReady(op);
  }

  void Allocate(int device, int64_t buffer, int64_t bytes) {
    memory_[device] += bytes;
    peak_[device] = std::max(peak_[device], memory_[device]);
    Record(device, buffer, bytes);
  }

  void Free(int device, int64_t buffer, int64_t bytes) {
    memory_[device] -= bytes;
    Record(device, buffer, -bytes);
  }

  void Record(int device, int64_t buffer, int64_t bytes) {
    if (!kTimeline) return;
    tl_->memory[device].emplace_back(now_, memory_[device]);
    if (bytes != 0) tl_->allocations.push_back({now_, device, buffer, bytes});
  }

  int64_t ScratchBuffer(int op) const { return static_cast<int64_t>(p_.n_tensors) * d() + op; }

  // `more` uses begin and one ends; the buffer is freed where none is left.
  void EndUse(int tensor, int device, int more = 0) {
    const int buffer = residences_[ResidenceOf(tensor, device)].buffer;
    if (buffer < 0) return;
    Residence& x = residences_[buffer];
    x.uses += more - 1;
    if (x.uses == 0) Free(device, buffer, x.bytes);
  }

  void StartOp(int op, int device) {
    const OpRecord& record = records_[op];
    const size_t at = static_cast<size_t>(op) * d() + device;
    for (int i = record.outputs_begin; i < record.outputs_end; ++i) PlaceOutput(p_.outputs.idx[i], device);
    if (record.has_scratch && p_.scratch[at] != 0) Allocate(device, ScratchBuffer(op), p_.scratch[at]);
    ++running_[device];
    const int64_t end = now_ + duration_[at];
    if (lanes_[device] == 1) {
      w_.only[device] = op;
      next_[device] = end;
    } else {
      PushHeap(&w_.endings[device], Ending{end, op, device});
      next_[device] = std::min(next_[device], end);
    }
    if (kTimeline) {
      tl_->start[op] = now_;
      tl_->end[op] = end;
      tl_->start_order.push_back(op);
    }
  }

  // While the op runs its outputs have one use each, the op's own: the consumers' are added when it ends. Nothing looks at the
  // difference before, since no consumer has started.
  void PlaceOutput(int tensor, int device) {
    const TensorRecord& record = tensors_[tensor];
    const int residence = ResidenceOf(tensor, device);
    Residence& x = residences_[residence];
    if (!record.plain && ShareBuffer(tensor, device, &x)) return;
    x = {residence, 1, record.size};
    Allocate(device, residence, record.size);
  }

  bool ShareBuffer(int tensor, int device, Residence* x) {
    if (p_.lifetime[tensor] == kLifetimePersistent) {
      x->buffer = -1;
      return true;
    }
    if (p_.view[tensor] >= 0) {
      x->buffer = residences_[ResidenceOf(p_.view[tensor], device)].buffer;
      if (x->buffer >= 0) ++residences_[x->buffer].uses;
      return true;
    }
    for (const int32_t* r = p_.reuse.begin(tensor); r != p_.reuse.end(tensor); ++r) {
      const int buffer = residences_[ResidenceOf(*r, device)].buffer;
      if (buffer >= 0 && residences_[buffer].uses == 1 && residences_[buffer].bytes == p_.size[tensor]) {
        x->buffer = buffer;
        ++residences_[buffer].uses;
        return true;
      }
    }
    return false;
  }

  void EndOp(int op, int device) {
    const OpRecord& record = records_[op];
    --running_[device];
    ready_devices_ |= Bit(device);
    if (record.has_scratch) {
      const int64_t scratch = p_.scratch[static_cast<size_t>(op) * d() + device];
      if (scratch != 0) Free(device, ScratchBuffer(op), scratch);
    }
    for (int i = record.outputs_begin; i < record.outputs_end; ++i) EndOutput(p_.outputs.idx[i], device);
    for (int i = record.inputs_begin; i < record.inputs_end; ++i) EndUse(p_.inputs.idx[i], device);
    if (record.control_begin != record.control_end) SendSignals(op, device);
  }

  // Releases the consumers that are here, queues the transfers to the others, and counts both as uses.
  void EndOutput(int tensor, int device) {
    const TensorRecord& record = tensors_[tensor];
    int uses = record.output ? 1 : 0;
    if (!kMultiple) {
      uses += record.consumers_end - record.consumers_begin;
      for (int i = record.consumers_begin; i < record.consumers_end; ++i) Release(consumers_[i]);
    } else {
      uint64_t others = 0;
      for (int i = record.consumers_begin; i < record.consumers_end; ++i) {
        const int consumer = consumers_[i], q = ops_[consumer].device;
        if (q == device) {
          ++uses;
          Release(consumer);
          continue;
        }
        Residence& there = residences_[ResidenceOf(tensor, q)];
        if (others & Bit(q)) {
          ++there.uses;
          there.bytes = std::min<int64_t>(there.bytes, ops_[consumer].rank);
        } else {
          others |= Bit(q);
          there.uses = 1;
          there.bytes = ops_[consumer].rank;
          ++uses;
        }
      }
      for (; others != 0; others &= others - 1) QueueTransfer(tensor, device, __builtin_ctzll(others));
    }
    EndUse(tensor, device, uses);
  }

  void SendSignals(int op, int device) {
    uint64_t signals = 0;
    for (const int32_t* o = p_.control_successors.begin(op); o != p_.control_successors.end(op); ++o) {
      const int q = DeviceOf(*o);
      if (q == device) {
        Release(*o);
      } else {
        signals |= Bit(q);
      }
    }
    for (; signals != 0; signals &= signals - 1) {
      const int q = __builtin_ctzll(signals);
      const int64_t time = now_ + p_.latency[Link(device, q)];
      PushHeap(&w_.signals, Ending{time, op, q});
      next_[2 * d()] = std::min(next_[2 * d()], time);
    }
  }

  void ArriveSignal(int op, int device) {
    for (const int32_t* o = p_.control_successors.begin(op); o != p_.control_successors.end(op); ++o) {
      if (ops_[*o].device == device) Release(*o);
    }
  }

  void QueueTransfer(int tensor, int src, int dst) {
    uint32_t key = 0;
    if (c_.transfers_by_consumer) {
      key = static_cast<uint32_t>(residences_[ResidenceOf(tensor, dst)].bytes);
    } else if (c_.transfer_priority) {
      key = DescendingKey(c_.transfer_priority[ResidenceOf(tensor, dst)]);
    }
    PushHeap(&w_.link_queue[Link(src, dst)], uint64_t{key} << 32 | static_cast<uint32_t>(tensor));
    w_.link_waiting[src] |= Bit(dst);
    startable_links_ |= Bit(src);
    if (blocking()) {
      ++w_.blocked_by[src];
      ++w_.blocked_by[dst];
    }
  }

  void StartTransfers() {
    for (uint64_t sources = startable_links_; sources != 0; sources &= sources - 1) {
      const int src = __builtin_ctzll(sources);
      for (uint64_t rest = w_.link_waiting[src] & ~w_.link_busy[src]; rest != 0; rest &= rest - 1) {
        const int dst = __builtin_ctzll(rest);
        if (blocking()) {
          if (running_[src] >= lanes_[src] || running_[dst] >= lanes_[dst]) continue;
          ++running_[src];
          ++running_[dst];
          --w_.blocked_by[src];
          --w_.blocked_by[dst];
        }
        StartTransfer(src, dst);
      }
    }
    if (!blocking()) startable_links_ = 0;  // else a lane that becomes free may let a waiting one start
  }

  void StartTransfer(int src, int dst) {
    const int link = Link(src, dst);
    const int tensor = static_cast<int>(PopHeap(&w_.link_queue[link]) & 0xffffffffu);
    if (w_.link_queue[link].empty()) w_.link_waiting[src] &= ~Bit(dst);
    w_.link_busy[src] |= Bit(dst);
    const int residence = ResidenceOf(tensor, dst);
    const int64_t size = tensors_[tensor].size;
    residences_[residence].buffer = residence;
    residences_[residence].bytes = size;
    Allocate(dst, residence, size);
    r_.transfer_bytes += size;
    const int64_t time = s_.transfer_time_.empty() ? p_.TransferTime(tensor, src, dst)
                                                   : s_.transfer_time_[static_cast<size_t>(s_.link_class_[link]) * p_.n_tensors + tensor];
    w_.link_tensor[link] = tensor;
    w_.link_end[link] = now_ + time;
    next_[d() + src] = std::min(next_[d() + src], now_ + time);
    if (kTimeline) tl_->transfers.push_back({tensor, src, dst, now_, now_ + time});
  }

  void EndTransfer(int tensor, int src, int dst) {
    w_.link_busy[src] &= ~Bit(dst);
    startable_links_ |= Bit(src);
    if (blocking()) {
      --running_[src];
      --running_[dst];
    }
    EndUse(tensor, src);
    const TensorRecord& record = tensors_[tensor];
    for (int i = record.consumers_begin; i < record.consumers_end; ++i) {
      const int consumer = consumers_[i];
      if (ops_[consumer].device == dst) Release(consumer);
    }
  }

  void StartOps() {
    if (blocking()) {
      for (int q = 0; q < d(); ++q) {
        if (w_.blocked_by[q] == 0) StartOps(q);
      }
      return;
    }
    for (uint64_t devices = ready_devices_; devices != 0; devices &= devices - 1) StartOps(__builtin_ctzll(devices));
    ready_devices_ = 0;
  }

  void StartOps(int device) {
    while (running_[device] < lanes_[device] && !w_.ready[device].empty()) {
      StartOp(w_.op_at_rank[w_.ready[device].PopFirst()], device);
    }
  }

  const Simulator& s_;
  const Problem& p_;
  const Candidate& c_;
  Workspace& w_;
  Evaluation& r_;
  Timeline* tl_;
  const int n_devices_;
  // The arrays of the hottest loops, so that no store makes the compiler load their addresses again.
  Workspace::OpState* const ops_;
  Residence* const residences_;
  int64_t* const next_;
  const OpRecord* const records_;
  const TensorRecord* const tensors_;
  const int32_t* const consumers_;
  const int64_t* const duration_;
  const int32_t* const lanes_;
  int32_t* const running_;
  int64_t* const memory_;
  int64_t* const peak_;
  int64_t now_ = 0;
  uint64_t startable_links_ = 0;  // sources where a transfer was queued or a line became free
  uint64_t ready_devices_ = 0;    // devices where an op became ready or a lane free
};

namespace {

void Prepare(const Problem& p, Workspace* w) {
  const size_t n = p.n_ops, residences = static_cast<size_t>(p.n_tensors) * p.n_devices, d = p.n_devices;
  if (w->ops.size() == n && w->residences.size() == residences && w->ready.size() == d) return;
  w->ops.resize(n);
  w->op_at_rank.resize(n);
  w->sort_a.resize(n);
  w->sort_b.resize(n);
  w->residences.resize(residences);
  w->ready.resize(d);
  w->running.resize(d);
  w->memory.resize(d);
  w->peak.resize(d);
  w->link_queue.resize(d * d);
  w->link_waiting.resize(d);
  w->link_busy.resize(d);
  w->link_end.resize(d * d);
  w->link_tensor.resize(d * d);
  w->blocked_by.resize(d);
  w->next.resize(2 * d + 1);
  w->only.resize(d);
  w->endings.resize(d);
}

}  // namespace

Simulator::Simulator(Problem problem) : problem_(std::move(problem)) {
  problem_.Finish();
  const Problem& p = problem_;
  ops_.resize(p.n_ops);
  for (int o = 0; o < p.n_ops; ++o) {
    const int64_t* scratch = p.scratch.data() + static_cast<size_t>(o) * p.n_devices;
    ops_[o] = {p.outputs.ptr[o], p.outputs.ptr[o + 1], p.inputs.ptr[o], p.inputs.ptr[o + 1], p.control_successors.ptr[o],
               p.control_successors.ptr[o + 1], p.n_predecessors[o],
               std::any_of(scratch, scratch + p.n_devices, [](int64_t bytes) { return bytes != 0; })};
    if (p.n_predecessors[o] == 0) sources_.push_back(o);
  }
  tensors_.resize(p.n_tensors);
  for (int t = 0; t < p.n_tensors; ++t) {
    const bool plain = p.lifetime[t] != kLifetimePersistent && p.view[t] < 0 && p.reuse.size(t) == 0;
    tensors_[t] = {p.consumers.ptr[t], p.consumers.ptr[t + 1], p.size[t], plain, p.lifetime[t] == kLifetimeOutput};
  }
  std::map<std::pair<int64_t, double>, int32_t> classes;
  for (int link = 0; link < p.n_devices * p.n_devices; ++link) {
    const bool to_itself = link % (p.n_devices + 1) == 0;
    link_class_.push_back(to_itself ? -1 : classes.emplace(std::pair(p.latency[link], p.ns_per_byte[link]), classes.size()).first->second);
  }
  if (classes.size() > kMaxLinkClasses) return;
  transfer_time_.resize(classes.size() * p.n_tensors);
  for (int link = 0; link < p.n_devices * p.n_devices; ++link) {
    if (link_class_[link] < 0) continue;
    int64_t* row = transfer_time_.data() + static_cast<size_t>(link_class_[link]) * p.n_tensors;
    for (int t = 0; t < p.n_tensors; ++t) row[t] = p.TransferTime(t, link / p.n_devices, link % p.n_devices);
  }
}

void Simulator::CheckCandidate(const Candidate& c) const {
  std::vector<int32_t> device_of_group(problem_.n_groups, -1);
  for (int o = 0; o < problem_.n_ops; ++o) {
    const int q = c.device[o], g = problem_.group[o];
    if (q < 0 || q >= problem_.n_devices) {
      throw std::invalid_argument("device[" + std::to_string(o) + "] is " + std::to_string(q) + "; expected 0 to " +
                                  std::to_string(problem_.n_devices - 1));
    }
    if (!(problem_.allowed[g] >> q & 1)) {
      throw std::invalid_argument("device[" + std::to_string(o) + "] is " + std::to_string(q) + ", where group " + std::to_string(g) +
                                  " may not run (negative duration)");
    }
    if (device_of_group[g] >= 0 && device_of_group[g] != q) {
      throw std::invalid_argument("device splits group " + std::to_string(g) + " over devices " + std::to_string(device_of_group[g]) +
                                  " and " + std::to_string(q));
    }
    device_of_group[g] = q;
    if (std::isnan(c.priority[o])) throw std::invalid_argument("priority[" + std::to_string(o) + "] is NaN");
  }
  if (c.transfer_priority) {
    const size_t residences = static_cast<size_t>(problem_.n_tensors) * problem_.n_devices;
    for (size_t i = 0; i < residences; ++i) {
      if (std::isnan(c.transfer_priority[i])) throw std::invalid_argument("transfer_priority[" + std::to_string(i) + "] is NaN");
    }
  }
}

void Simulator::Evaluate(const Candidate& candidate, Workspace* workspace, Evaluation* result, Timeline* timeline) const {
  Prepare(problem_, workspace);
  const bool usual = candidate.discipline == Discipline::kPriority && !problem_.blocking_transfers;
  auto run = [&](auto devices) {
    constexpr int kDevices = decltype(devices)::value;
    if (timeline) {
      Run<kDevices, false, true>(*this, candidate, workspace, result, timeline).Go();
    } else if (usual) {
      Run<kDevices, true, false>(*this, candidate, workspace, result, timeline).Go();
    } else {
      Run<kDevices, false, false>(*this, candidate, workspace, result, timeline).Go();
    }
  };
  switch (problem_.n_devices) {
    case 1: run(std::integral_constant<int, 1>()); break;
    case 2: run(std::integral_constant<int, 2>()); break;
    default: run(std::integral_constant<int, 0>()); break;
  }
}

}  // namespace tf_regal
