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

constexpr int kNoRank = std::numeric_limits<int32_t>::max();

uint64_t Bit(int i) { return uint64_t{1} << i; }

// Cells of a node's state: a power of two up to two devices, so that a node does not straddle two cache lines.
constexpr int CellsPerNode(int n_devices) { return n_devices == 2 ? 4 : n_devices + 1; }

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

// One evaluation. kDevices: 1, 2, or 0 for any number; kUsual: ready ops by priority, none held back, transfers beside compute; kTimeline: the
// timeline is recorded.
template <int kDevices, bool kUsual, bool kTimeline>
class Run {
 public:
  Run(const Simulator& simulator, const Candidate& candidate, Workspace* workspace, Evaluation* result, Timeline* timeline)
      : s_(simulator), p_(simulator.problem_), c_(candidate), w_(*workspace), r_(*result), tl_(timeline),
        n_devices_(p_.n_devices), nodes_(s_.nodes_.data()), edges_(s_.edges_.data()), cells_(w_.cells.data()),
        next_(w_.next.data()), lanes_(p_.lanes.data()), running_(w_.running.data()), memory_(w_.memory.data()),
        peak_(w_.peak.data()) {}

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
  using Cell = Workspace::Cell;
  using Ending = Workspace::Ending;
  using OpState = Workspace::OpState;
  using Residence = Workspace::Residence;

  constexpr int d() const { return kDevices ? kDevices : n_devices_; }
  constexpr int stride() const { return CellsPerNode(d()); }
  bool blocking() const { return !kUsual && p_.blocking_transfers; }
  bool by_priority() const { return kUsual || c_.discipline == Discipline::kPriority; }
  int hold() const { return kUsual ? 0 : c_.hold; }
  OpState& StateOf(int node) { return cells_[static_cast<size_t>(node) * stride()].op; }
  int CellOf(int node, int device) const { return node * stride() + 1 + device; }
  Residence& ResidenceOf(int node, int device) { return cells_[CellOf(node, device)].residence; }
  int DeviceOf(int node) { return kMultiple ? StateOf(node).device : 0; }
  int PersistentCell() const { return s_.n_nodes() * stride(); }
  int Link(int src, int dst) const { return src * d() + dst; }
  size_t AtOp(int node, int device) const { return static_cast<size_t>(nodes_[node].op) * d() + device; }
  int64_t DurationOf(const Node& node, int device) const {
    return kDevices ? node.duration[device] : p_.duration[static_cast<size_t>(node.op) * d() + device];
  }

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
    cells_[PersistentCell()].residence = {PersistentCell(), 0, 0};
    const int32_t* const node_of_op = s_.node_of_op_.data();
    if (by_priority() && c_.order) {
      for (int rank = 0; rank < n; ++rank) SetRank(node_of_op[c_.order[rank]], rank);
    } else if (by_priority()) {
      const uint64_t* sorted = SortByPriority(c_.priority, node_of_op, n, w_.sort_a.data(), w_.sort_b.data());
      for (int rank = 0; rank < n; ++rank) SetRank(static_cast<int>(sorted[rank] & 0xffffffffu), rank);
    }
    for (int o = 0; o < n; ++o) {
      OpState& state = StateOf(node_of_op[o]);
      state.pending = p_.n_predecessors[o];
      state.device = kMultiple ? c_.device[o] : 0;
    }
    if (hold() > 0) {
      for (int rank = hold(); rank < n; ++rank) ++StateOf(w_.node_at_rank[rank]).pending;
    }
    for (int o : s_.persistent_) memory_[kMultiple ? c_.device[o] : 0] += p_.persistent[o];
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
    for (int node : s_.sources_) {
      if (StateOf(node).pending == 0) BecomeReady(node, DeviceOf(node));
    }
    FlushArrivals();
  }

  void SetRank(int node, int rank) {
    w_.node_at_rank[rank] = node;
    StateOf(node).rank = rank;
  }

  int64_t NextEvent() const {
    int64_t first = next_[0];
    const int n = kMultiple ? 2 * d() + 1 : 1;
    for (int i = 1; i < n; ++i) first = std::min(first, next_[i]);
    return first;
  }

  // What the batch itself schedules for this very time (signals over links without latency) belongs to the next one: so signals first.
  void HandleBatch() {
    if (kMultiple && next_[2 * d()] == now_) {
      while (!w_.signals.empty() && w_.signals.front().time == now_) {
        const Ending signal = PopHeap(&w_.signals);
        if (signal.id < 0) {
          Release(~signal.id, signal.device);
        } else {
          ArriveSignal(signal.id, signal.device);
        }
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
        EndTransfer(w_.link_node[Link(src, dst)], src, dst);
      } else {
        next = std::min(next, w_.link_end[Link(src, dst)]);
      }
    }
    next_[d() + src] = next;
  }

  void BecomeReady(int node, int device) {
    if (by_priority()) {
      w_.ready[device].Insert(StateOf(node).rank);
      ready_devices_ |= Bit(device);
    } else {
      w_.became_ready.push_back(node);
    }
  }

  // Fifo and lifo: the order of arrival is the rank. Within a batch it is the op's index, whatever the order of the batch.
  void FlushArrivals() {
    if (by_priority()) return;
    std::sort(w_.became_ready.begin(), w_.became_ready.end());
    for (int node : w_.became_ready) {
      const int rank = c_.discipline == Discipline::kFifo ? w_.arrivals : p_.n_ops - 1 - w_.arrivals;
      ++w_.arrivals;
      w_.node_at_rank[rank] = node;
      w_.ready[DeviceOf(node)].Insert(rank);
      ready_devices_ |= Bit(DeviceOf(node));
    }
    w_.became_ready.clear();
  }

  void Release(int node, int device) {
    if (--StateOf(node).pending == 0) BecomeReady(node, device);
  }

  void Allocate(int device, int64_t bytes) {
    memory_[device] += bytes;
    peak_[device] = std::max(peak_[device], memory_[device]);
  }

  // Only where the timeline is recorded; of a buffer by its cell, of scratch memory by −1 − the op.
  void Record(int device, int64_t buffer, int64_t bytes) {
    tl_->memory[device].emplace_back(now_, memory_[device]);
    if (bytes == 0) return;
    if (buffer < 0) {
      buffer = static_cast<int64_t>(p_.n_tensors) * d() - 1 - buffer;
    } else {
      buffer = static_cast<int64_t>(nodes_[buffer / stride()].tensor) * d() + buffer % stride() - 1;
    }
    tl_->allocations.push_back({now_, device, buffer, bytes});
  }

  // `more` uses begin and one ends; the buffer is freed where none is left. Without a branch: half of them would be guessed wrong.
  void EndUse(int node, int device, int more = 0) {
    const int buffer = ResidenceOf(node, device).buffer;
    Residence& x = cells_[buffer].residence;
    x.uses += more - 1;
    if (kTimeline) {
      if (x.uses != 0 || buffer == PersistentCell()) return;
      memory_[device] -= x.bytes;
      Record(device, buffer, -x.bytes);
    } else {
      memory_[device] -= x.uses == 0 ? x.bytes : 0;
    }
  }

  void StartOp(int node, int device) {
    const Node& record = nodes_[node];
    if (record.flags & kSingle) {
      PlaceOutput(node, device);
    } else {
      ForOutputs(node, [&](int output) { PlaceOutput(output, device); });
    }
    if (record.flags & kScratch) {
      const int64_t bytes = p_.scratch[AtOp(node, device)];
      if (bytes != 0) {
        Allocate(device, bytes);
        if (kTimeline) Record(device, -1 - record.op, bytes);
      }
    }
    ++running_[device];
    const int64_t end = now_ + DurationOf(record, device);
    if (lanes_[device] == 1) {
      w_.only[device] = node;
      next_[device] = end;
    } else {
      PushHeap(&w_.endings[device], Ending{end, node, device});
      next_[device] = std::min(next_[device], end);
    }
    if (kTimeline) {
      tl_->start[record.op] = now_;
      tl_->end[record.op] = end;
      tl_->start_order.push_back(record.op);
    }
  }

  template <typename Function>
  void ForOutputs(int node, Function function) {
    const int n = p_.outputs.size(nodes_[node].op);
    for (int i = 0; i < n; ++i) function(node + i);
  }

  // While the op runs its outputs have one use each, the op's own: the consumers' are added when it ends. Nothing looks at the
  // difference before, since no consumer has started.
  void PlaceOutput(int node, int device) {
    const Node& record = nodes_[node];
    const int cell = CellOf(node, device);
    Residence& x = cells_[cell].residence;
    if (!(record.flags & kPlain) && ShareBuffer(record.tensor, device, &x)) return;
    x = {cell, 1, record.size};
    Allocate(device, record.size);
    if (kTimeline) Record(device, cell, record.size);
  }

  bool ShareBuffer(int tensor, int device, Residence* x) {
    if (p_.lifetime[tensor] == kLifetimePersistent) {
      x->buffer = PersistentCell();
      return true;
    }
    if (p_.view[tensor] >= 0) {
      x->buffer = ResidenceOf(s_.node_of_tensor_[p_.view[tensor]], device).buffer;
      ++cells_[x->buffer].residence.uses;
      return true;
    }
    for (const int32_t* r = p_.reuse.begin(tensor); r != p_.reuse.end(tensor); ++r) {
      const int buffer = ResidenceOf(s_.node_of_tensor_[*r], device).buffer;
      Residence& there = cells_[buffer].residence;
      if (buffer != PersistentCell() && there.uses == 1 && there.bytes == p_.size[tensor]) {
        x->buffer = buffer;
        ++there.uses;
        return true;
      }
    }
    return false;
  }

  void EndOp(int node, int device) {
    const Node& record = nodes_[node];
    --running_[device];
    ready_devices_ |= Bit(device);
    if (record.flags & kScratch) {
      const int64_t bytes = p_.scratch[AtOp(node, device)];
      memory_[device] -= bytes;
      if (kTimeline && bytes != 0) Record(device, -1 - record.op, -bytes);
    }
    if (record.flags & kSingle) {
      EndOutput(node, device);
    } else {
      ForOutputs(node, [&](int output) { EndOutput(output, device); });
    }
    const int32_t* input = edges_ + record.inputs;
    for (int i = 0; i < record.n_inputs; ++i) EndUse(input[i], device);
    if (record.flags & kControl) SendSignals(record.op, device);
    if (hold() > 0) LetGo(StateOf(node).rank + hold(), device);
  }

  // Releases the consumers that are here, queues the transfers to the others, and counts both as uses.
  void EndOutput(int node, int device) {
    const Node& record = nodes_[node];
    const int32_t* const consumer = edges_ + record.consumers;
    int uses = record.flags & kOutput ? 1 : 0;
    if (kDevices == 1) {
      uses += record.n_consumers;
      for (int i = 0; i < record.n_consumers; ++i) Release(consumer[i], device);
    } else if (kDevices == 2) {
      int here = 0, first = kNoRank;
      for (int i = 0; i < record.n_consumers; ++i) {
        OpState& state = StateOf(consumer[i]);
        const int same = state.device == device;  // added up without a branch, since it is as good as random
        here += same;
        state.pending -= same;
        first = std::min(first, same ? kNoRank : state.rank);
        if (state.pending == 0) BecomeReady(consumer[i], device);  // one that is elsewhere still waits for this tensor
      }
      uses += here;
      if (here != record.n_consumers) {
        ++uses;
        Residence& there = ResidenceOf(node, 1 - device);
        there.uses = record.n_consumers - here;
        there.bytes = first;
        QueueTransfer(node, device, 1 - device);
      }
    } else {
      uint64_t others = 0;
      for (int i = 0; i < record.n_consumers; ++i) {
        const OpState& state = StateOf(consumer[i]);
        const int q = state.device;
        if (q == device) {
          ++uses;
          Release(consumer[i], device);
          continue;
        }
        Residence& there = ResidenceOf(node, q);
        if (others & Bit(q)) {
          ++there.uses;
          there.bytes = std::min<int64_t>(there.bytes, state.rank);
        } else {
          others |= Bit(q);
          there.uses = 1;
          there.bytes = state.rank;
          ++uses;
        }
      }
      for (; others != 0; others &= others - 1) QueueTransfer(node, device, __builtin_ctzll(others));
    }
    EndUse(node, device, uses);
  }

  // The op at a place that was held back until one on `device` had ended.
  void LetGo(int rank, int device) {
    if (rank >= p_.n_ops) return;
    const int node = w_.node_at_rank[rank], q = DeviceOf(node);
    if (q == device) {
      Release(node, q);
    } else {
      PushSignal(~node, device, q);
    }
  }

  void PushSignal(int id, int src, int dst) {
    const int64_t time = now_ + p_.latency[Link(src, dst)];
    PushHeap(&w_.signals, Ending{time, id, dst});
    next_[2 * d()] = std::min(next_[2 * d()], time);
  }

  void SendSignals(int op, int device) {
    uint64_t signals = 0;
    for (const int32_t* o = p_.control_successors.begin(op); o != p_.control_successors.end(op); ++o) {
      const int successor = s_.node_of_op_[*o], q = DeviceOf(successor);
      if (q == device) {
        Release(successor, q);
      } else {
        signals |= Bit(q);
      }
    }
    for (; signals != 0; signals &= signals - 1) {
      PushSignal(op, device, __builtin_ctzll(signals));
    }
  }

  void ArriveSignal(int op, int device) {
    for (const int32_t* o = p_.control_successors.begin(op); o != p_.control_successors.end(op); ++o) {
      const int successor = s_.node_of_op_[*o];
      if (DeviceOf(successor) == device) Release(successor, device);
    }
  }

  void QueueTransfer(int node, int src, int dst) {
    const int tensor = nodes_[node].tensor;
    uint32_t key = 0;
    if (c_.transfers_by_consumer) {
      key = static_cast<uint32_t>(ResidenceOf(node, dst).bytes);
    } else if (c_.transfer_priority) {
      key = DescendingKey(c_.transfer_priority[static_cast<size_t>(tensor) * d() + dst]);
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
    const int node = s_.node_of_tensor_[PopHeap(&w_.link_queue[link]) & 0xffffffffu];
    if (w_.link_queue[link].empty()) w_.link_waiting[src] &= ~Bit(dst);
    w_.link_busy[src] |= Bit(dst);
    const Node& record = nodes_[node];
    Residence& there = ResidenceOf(node, dst);
    there.buffer = CellOf(node, dst);
    there.bytes = record.size;
    Allocate(dst, record.size);
    if (kTimeline) Record(dst, there.buffer, record.size);
    r_.transfer_bytes += record.size;
    const int64_t time = s_.transfer_time_.empty()
                             ? p_.TransferTime(record.tensor, src, dst)
                             : s_.transfer_time_[static_cast<size_t>(s_.link_class_[link]) * p_.n_tensors + record.tensor];
    w_.link_node[link] = node;
    w_.link_end[link] = now_ + time;
    next_[d() + src] = std::min(next_[d() + src], now_ + time);
    if (kTimeline) tl_->transfers.push_back({record.tensor, src, dst, now_, now_ + time});
  }

  void EndTransfer(int node, int src, int dst) {
    w_.link_busy[src] &= ~Bit(dst);
    startable_links_ |= Bit(src);
    if (blocking()) {
      --running_[src];
      --running_[dst];
    }
    EndUse(node, src);
    const Node& record = nodes_[node];
    const int32_t* const consumer = edges_ + record.consumers;
    for (int i = 0; i < record.n_consumers; ++i) {
      OpState& state = StateOf(consumer[i]);
      const int same = state.device == dst;
      state.pending -= same;
      if (same & (state.pending == 0)) BecomeReady(consumer[i], dst);
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
      StartOp(w_.node_at_rank[w_.ready[device].PopFirst()], device);
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
  const Node* const nodes_;
  const int32_t* const edges_;
  Cell* const cells_;
  int64_t* const next_;
  const int32_t* const lanes_;
  int32_t* const running_;
  int64_t* const memory_;
  int64_t* const peak_;
  int64_t now_ = 0;
  uint64_t startable_links_ = 0;  // sources where a transfer was queued or a line became free
  uint64_t ready_devices_ = 0;    // devices where an op became ready or a lane free
};

namespace {

void Prepare(const Problem& p, int n_nodes, Workspace* w) {
  const size_t n = p.n_ops, d = p.n_devices, cells = static_cast<size_t>(n_nodes) * CellsPerNode(p.n_devices) + 1;
  if (w->node_at_rank.size() == n && w->cells.size() == cells && w->ready.size() == d) return;
  w->cells.resize(cells);
  w->node_at_rank.resize(n);
  w->sort_a.resize(n);
  w->sort_b.resize(n);
  w->ready.resize(d);
  w->running.resize(d);
  w->memory.resize(d);
  w->peak.resize(d);
  w->link_queue.resize(d * d);
  w->link_waiting.resize(d);
  w->link_busy.resize(d);
  w->link_end.resize(d * d);
  w->link_node.resize(d * d);
  w->blocked_by.resize(d);
  w->next.resize(2 * d + 1);
  w->only.resize(d);
  w->endings.resize(d);
}

}  // namespace

Simulator::Simulator(Problem problem) : problem_(std::move(problem)) {
  problem_.Finish();
  const Problem& p = problem_;
  BuildNodes();
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

void Simulator::BuildNodes() {
  const Problem& p = problem_;
  node_of_op_.resize(p.n_ops);
  node_of_tensor_.resize(p.n_tensors);
  int n = 0;
  for (int o = 0; o < p.n_ops; ++o) {
    node_of_op_[o] = n;
    for (int i = 0; i < p.outputs.size(o); ++i) node_of_tensor_[p.outputs.begin(o)[i]] = n + i;
    n += std::max(1, p.outputs.size(o));
  }
  if (static_cast<int64_t>(n) * CellsPerNode(p.n_devices) >= std::numeric_limits<int32_t>::max()) {
    throw std::invalid_argument("the problem has too many tensors on too many devices (" + std::to_string(n) + " on " +
                                std::to_string(p.n_devices) + "): their product must stay below 2^31");
  }
  nodes_.resize(n);
  edges_.reserve(p.inputs.idx.size() + p.consumers.idx.size());
  for (int o = 0; o < p.n_ops; ++o) {
    Node& node = nodes_[node_of_op_[o]];
    const int64_t* scratch = p.scratch.data() + static_cast<size_t>(o) * p.n_devices;
    node.op = o;
    node.tensor = -1;
    for (int q = 0; q < std::min(2, p.n_devices); ++q) node.duration[q] = p.duration[static_cast<size_t>(o) * p.n_devices + q];
    node.inputs = static_cast<int32_t>(edges_.size());
    node.n_inputs = p.inputs.size(o);
    for (const int32_t* t = p.inputs.begin(o); t != p.inputs.end(o); ++t) edges_.push_back(node_of_tensor_[*t]);
    if (std::any_of(scratch, scratch + p.n_devices, [](int64_t bytes) { return bytes != 0; })) node.flags |= kScratch;
    if (p.control_successors.size(o) > 0) node.flags |= kControl;
    if (p.outputs.size(o) == 1) node.flags |= kSingle;
    for (const int32_t* t = p.outputs.begin(o); t != p.outputs.end(o); ++t) {
      Node& output = nodes_[node_of_tensor_[*t]];
      output.op = o;
      output.tensor = *t;
      output.size = p.size[*t];
      output.consumers = static_cast<int32_t>(edges_.size());
      output.n_consumers = p.consumers.size(*t);
      for (const int32_t* c = p.consumers.begin(*t); c != p.consumers.end(*t); ++c) edges_.push_back(node_of_op_[*c]);
      if (p.lifetime[*t] != kLifetimePersistent && p.view[*t] < 0 && p.reuse.size(*t) == 0) output.flags |= kPlain;
      if (p.lifetime[*t] == kLifetimeOutput) output.flags |= kOutput;
    }
    if (p.n_predecessors[o] == 0) sources_.push_back(node_of_op_[o]);
    if (p.persistent[o] != 0) persistent_.push_back(o);
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
  Prepare(problem_, n_nodes(), workspace);
  const bool usual = candidate.discipline == Discipline::kPriority && candidate.hold == 0 && !problem_.blocking_transfers;
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
