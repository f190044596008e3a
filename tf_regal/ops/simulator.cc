#include "simulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

namespace tf_regal {
namespace {

enum EventKind : uint8_t { kOpEnd, kTransferEnd, kSignal };

// Larger floats get smaller keys, so that sorting keys upwards sorts priorities downwards.
inline uint32_t DescendingKey(float value) {
  uint32_t bits;
  value += 0.0f;  // −0 becomes +0: they are equal priorities
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

// One evaluation. kMultiple: more than one device; kTimeline: the timeline is recorded.
template <bool kMultiple, bool kTimeline>
class Run {
 public:
  Run(const Problem& problem, const Candidate& candidate, Workspace* workspace, Evaluation* result, Timeline* timeline)
      : p_(problem), c_(candidate), w_(*workspace), r_(*result), tl_(timeline), d_(problem.n_devices) {}

  void Go() {
    Begin();
    for (;;) {
      HandleBatch();
      if (kMultiple) {
        StartTransfers();
        if (!w_.events.empty() && w_.events.front().time == now_) continue;
      }
      StartOps();
      if (w_.events.empty()) break;
      now_ = w_.events.front().time;
    }
    r_.makespan = now_;
    r_.excess = 0;
    for (int q = 0; q < d_; ++q) r_.excess += std::max<int64_t>(0, r_.peak[q] - p_.capacity[q]);
  }

 private:
  using Event = Workspace::Event;

  int DeviceOf(int op) const { return kMultiple ? c_.device[op] : 0; }
  int Residence(int tensor, int device) const { return kMultiple ? tensor * d_ + device : tensor; }

  void Begin() {
    if (c_.discipline == Discipline::kPriority) RankByPriority(c_.priority, p_.n_ops, &w_);
    w_.arrivals = 0;
    w_.pending.assign(p_.n_predecessors.begin(), p_.n_predecessors.end());
    w_.events.clear();
    w_.became_ready.clear();
    r_.peak.assign(d_, 0);
    r_.transfer_bytes = 0;
    for (int q = 0; q < d_; ++q) {
      w_.ready[q].Reset(p_.n_ops);
      w_.running[q] = 0;
      w_.memory[q] = 0;
      w_.link_waiting[q] = w_.link_busy[q] = 0;
      w_.blocked_by[q] = 0;
    }
    for (int o = 0; o < p_.n_ops; ++o) w_.memory[DeviceOf(o)] += p_.persistent[o];
    for (int q = 0; q < d_; ++q) r_.peak[q] = w_.memory[q];
    if (kTimeline) {
      tl_->start.assign(p_.n_ops, -1);
      tl_->end.assign(p_.n_ops, -1);
      tl_->start_order.clear();
      tl_->transfers.clear();
      tl_->allocations.clear();
      tl_->memory.assign(d_, {});
      for (int q = 0; q < d_; ++q) tl_->memory[q].emplace_back(0, w_.memory[q]);
    }
    for (int o = 0; o < p_.n_ops; ++o) {
      if (w_.pending[o] == 0) BecomeReady(o);
    }
    FlushArrivals();
  }

  void HandleBatch() {
    // What the batch itself schedules for this very time (signals over links without latency) belongs to the next one.
    w_.batch.clear();
    while (!w_.events.empty() && w_.events.front().time == now_) {
      w_.batch.push_back(w_.events.front());
      std::pop_heap(w_.events.begin(), w_.events.end(), std::greater<Event>());
      w_.events.pop_back();
    }
    for (const Event& event : w_.batch) {
      switch (event.kind) {
        case kOpEnd: EndOp(event.id); break;
        case kTransferEnd: EndTransfer(event.id, event.src, event.dst); break;
        default: ArriveSignal(event.id, event.dst); break;
      }
    }
    FlushArrivals();
  }

  void Push(int64_t time, EventKind kind, int id, int src, int dst) {
    w_.events.push_back({time, static_cast<uint32_t>(id), kind, static_cast<uint8_t>(src), static_cast<uint8_t>(dst)});
    std::push_heap(w_.events.begin(), w_.events.end(), std::greater<Event>());
  }

  void BecomeReady(int op) {
    if (c_.discipline == Discipline::kPriority) {
      w_.ready[DeviceOf(op)].Insert(w_.rank_of_op[op]);
    } else {
      w_.became_ready.push_back(op);
    }
  }

  // Fifo and lifo: the order of arrival is the rank. Within a batch it is the op's index, whatever the order of the batch.
  void FlushArrivals() {
    if (w_.became_ready.empty()) return;
    std::sort(w_.became_ready.begin(), w_.became_ready.end());
    for (int op : w_.became_ready) {
      const int rank = c_.discipline == Discipline::kFifo ? w_.arrivals : p_.n_ops - 1 - w_.arrivals;
      ++w_.arrivals;
      w_.op_at_rank[rank] = op;
      w_.ready[DeviceOf(op)].Insert(rank);
    }
    w_.became_ready.clear();
  }

  void Release(int op) {
    if (--w_.pending[op] == 0) BecomeReady(op);
  }

  void Allocate(int device, int64_t buffer, int64_t bytes) {
    w_.memory[device] += bytes;
    r_.peak[device] = std::max(r_.peak[device], w_.memory[device]);
    Record(device, buffer, bytes);
  }

  void Free(int device, int64_t buffer, int64_t bytes) {
    w_.memory[device] -= bytes;
    Record(device, buffer, -bytes);
  }

  void Record(int device, int64_t buffer, int64_t bytes) {
    if (!kTimeline) return;
    tl_->memory[device].emplace_back(now_, w_.memory[device]);
    if (bytes != 0) tl_->allocations.push_back({now_, device, buffer, bytes});
  }

  int64_t ScratchBuffer(int op) const { return static_cast<int64_t>(p_.n_tensors) * d_ + op; }

  void EndUse(int tensor, int device) {
    const int buffer = w_.buffer[Residence(tensor, device)];
    if (buffer >= 0 && --w_.uses[buffer] == 0) Free(device, buffer, w_.allocated[buffer]);
  }

  void NewBuffer(int residence, int device, int64_t bytes, int uses) {
    w_.buffer[residence] = residence;
    w_.uses[residence] = uses;
    w_.allocated[residence] = bytes;
    Allocate(device, residence, bytes);
  }

  void StartOp(int op, int device) {
    const size_t at = static_cast<size_t>(op) * d_ + device;
    for (const int32_t* t = p_.outputs.begin(op); t != p_.outputs.end(op); ++t) PlaceOutput(*t, device);
    if (p_.scratch[at] != 0) Allocate(device, ScratchBuffer(op), p_.scratch[at]);
    ++w_.running[device];
    Push(now_ + p_.duration[at], kOpEnd, op, device, device);
    if (kTimeline) {
      tl_->start[op] = now_;
      tl_->end[op] = now_ + p_.duration[at];
      tl_->start_order.push_back(op);
    }
  }

  void PlaceOutput(int tensor, int device) {
    int uses = 1 + (p_.lifetime[tensor] == kLifetimeOutput ? 1 : 0);
    if (kMultiple) {
      uint64_t others = 0;
      for (const int32_t* o = p_.consumers.begin(tensor); o != p_.consumers.end(tensor); ++o) {
        const int q = c_.device[*o];
        if (q == device) {
          ++uses;
        } else {
          others |= uint64_t{1} << q;
        }
      }
      w_.destinations[tensor] = others;
      uses += __builtin_popcountll(others);
    } else {
      uses += p_.consumers.size(tensor);
    }
    const int residence = Residence(tensor, device);
    if (p_.lifetime[tensor] == kLifetimePersistent) {
      w_.buffer[residence] = -1;
      return;
    }
    if (p_.view[tensor] >= 0) {
      const int buffer = w_.buffer[Residence(p_.view[tensor], device)];
      w_.buffer[residence] = buffer;
      if (buffer >= 0) w_.uses[buffer] += uses;
      return;
    }
    for (const int32_t* r = p_.reuse.begin(tensor); r != p_.reuse.end(tensor); ++r) {
      const int buffer = w_.buffer[Residence(*r, device)];
      if (buffer >= 0 && w_.uses[buffer] == 1 && w_.allocated[buffer] == p_.size[tensor]) {
        w_.buffer[residence] = buffer;
        w_.uses[buffer] += uses;
        return;
      }
    }
    NewBuffer(residence, device, p_.size[tensor], uses);
  }

  void EndOp(int op) {
    const int device = DeviceOf(op);
    --w_.running[device];
    const int64_t scratch = p_.scratch[static_cast<size_t>(op) * d_ + device];
    if (scratch != 0) Free(device, ScratchBuffer(op), scratch);
    for (const int32_t* t = p_.outputs.begin(op); t != p_.outputs.end(op); ++t) {
      for (const int32_t* o = p_.consumers.begin(*t); o != p_.consumers.end(*t); ++o) {
        if (!kMultiple || c_.device[*o] == device) Release(*o);
      }
      if (kMultiple) {
        for (uint64_t rest = w_.destinations[*t]; rest != 0; rest &= rest - 1) QueueTransfer(*t, device, __builtin_ctzll(rest));
      }
      EndUse(*t, device);
    }
    for (const int32_t* t = p_.inputs.begin(op); t != p_.inputs.end(op); ++t) EndUse(*t, device);
    uint64_t signals = 0;
    for (const int32_t* o = p_.control_successors.begin(op); o != p_.control_successors.end(op); ++o) {
      const int q = DeviceOf(*o);
      if (q == device) {
        Release(*o);
      } else {
        signals |= uint64_t{1} << q;
      }
    }
    for (; signals != 0; signals &= signals - 1) {
      const int q = __builtin_ctzll(signals);
      Push(now_ + p_.latency[static_cast<size_t>(device) * d_ + q], kSignal, op, device, q);
    }
  }

  void ArriveSignal(int op, int device) {
    for (const int32_t* o = p_.control_successors.begin(op); o != p_.control_successors.end(op); ++o) {
      if (c_.device[*o] == device) Release(*o);
    }
  }

  void QueueTransfer(int tensor, int src, int dst) {
    const float priority = c_.transfer_priority ? c_.transfer_priority[static_cast<size_t>(tensor) * d_ + dst] : 0.0f;
    auto& queue = w_.link_queue[static_cast<size_t>(src) * d_ + dst];
    queue.push_back(uint64_t{DescendingKey(priority)} << 32 | static_cast<uint32_t>(tensor));
    std::push_heap(queue.begin(), queue.end(), std::greater<uint64_t>());
    w_.link_waiting[src] |= uint64_t{1} << dst;
    if (p_.blocking_transfers) {
      ++w_.blocked_by[src];
      ++w_.blocked_by[dst];
    }
  }

  void StartTransfers() {
    for (int src = 0; src < d_; ++src) {
      for (uint64_t rest = w_.link_waiting[src] & ~w_.link_busy[src]; rest != 0; rest &= rest - 1) {
        const int dst = __builtin_ctzll(rest);
        if (p_.blocking_transfers) {
          if (w_.running[src] >= p_.lanes[src] || w_.running[dst] >= p_.lanes[dst]) continue;
          ++w_.running[src];
          ++w_.running[dst];
          --w_.blocked_by[src];
          --w_.blocked_by[dst];
        }
        StartTransfer(src, dst);
      }
    }
  }

  void StartTransfer(int src, int dst) {
    auto& queue = w_.link_queue[static_cast<size_t>(src) * d_ + dst];
    const int tensor = static_cast<int>(queue.front() & 0xffffffffu);
    std::pop_heap(queue.begin(), queue.end(), std::greater<uint64_t>());
    queue.pop_back();
    if (queue.empty()) w_.link_waiting[src] &= ~(uint64_t{1} << dst);
    w_.link_busy[src] |= uint64_t{1} << dst;
    int uses = 0;
    for (const int32_t* o = p_.consumers.begin(tensor); o != p_.consumers.end(tensor); ++o) uses += c_.device[*o] == dst;
    NewBuffer(Residence(tensor, dst), dst, p_.size[tensor], uses);
    r_.transfer_bytes += p_.size[tensor];
    const int64_t end = now_ + p_.TransferTime(tensor, src, dst);
    Push(end, kTransferEnd, tensor, src, dst);
    if (kTimeline) tl_->transfers.push_back({tensor, src, dst, now_, end});
  }

  void EndTransfer(int tensor, int src, int dst) {
    w_.link_busy[src] &= ~(uint64_t{1} << dst);
    if (p_.blocking_transfers) {
      --w_.running[src];
      --w_.running[dst];
    }
    EndUse(tensor, src);
    for (const int32_t* o = p_.consumers.begin(tensor); o != p_.consumers.end(tensor); ++o) {
      if (c_.device[*o] == dst) Release(*o);
    }
  }

  void StartOps() {
    for (int q = 0; q < d_; ++q) {
      if (p_.blocking_transfers && w_.blocked_by[q] != 0) continue;
      while (w_.running[q] < p_.lanes[q] && !w_.ready[q].empty()) StartOp(w_.op_at_rank[w_.ready[q].PopFirst()], q);
    }
  }

  const Problem& p_;
  const Candidate& c_;
  Workspace& w_;
  Evaluation& r_;
  Timeline* tl_;
  const int d_;
  int64_t now_ = 0;
};

void Prepare(const Problem& p, Workspace* w) {
  const size_t n = p.n_ops, residences = static_cast<size_t>(p.n_tensors) * p.n_devices, d = p.n_devices;
  if (w->op_at_rank.size() == n && w->buffer.size() == residences && w->ready.size() == d &&
      w->destinations.size() == static_cast<size_t>(p.n_tensors)) {
    return;
  }
  w->op_at_rank.resize(n);
  w->rank_of_op.resize(n);
  w->sort_a.resize(n);
  w->sort_b.resize(n);
  w->buffer.resize(residences);
  w->uses.resize(residences);
  w->allocated.resize(residences);
  w->destinations.resize(p.n_tensors);
  w->ready.resize(d);
  w->running.resize(d);
  w->memory.resize(d);
  w->link_queue.resize(d * d);
  w->link_waiting.resize(d);
  w->link_busy.resize(d);
  w->blocked_by.resize(d);
}

}  // namespace

void RankSet::Reset(int n) {
  levels_ = 0;
  int total = 0;
  for (int width = n; levels_ == 0 || width > 1;) {
    width = (width + 63) / 64;
    level_begin_[levels_++] = total;
    total += width;
  }
  words_.assign(std::max(total, 1), 0);
  count_ = 0;
}

void RankSet::Insert(int rank) {
  ++count_;
  for (int level = 0; level < levels_; ++level) {
    uint64_t& word = words_[level_begin_[level] + (rank >> 6)];
    const bool was_empty = word == 0;
    word |= uint64_t{1} << (rank & 63);
    if (!was_empty) return;
    rank >>= 6;
  }
}

int RankSet::PopFirst() {
  --count_;
  int rank = 0;
  for (int level = levels_ - 1; level >= 0; --level) {
    rank = rank << 6 | __builtin_ctzll(words_[level_begin_[level] + rank]);
  }
  int position = rank;
  for (int level = 0; level < levels_; ++level) {
    uint64_t& word = words_[level_begin_[level] + (position >> 6)];
    word &= ~(uint64_t{1} << (position & 63));
    if (word != 0) break;
    position >>= 6;
  }
  return rank;
}

void RankByPriority(const float* priority, int n, Workspace* workspace) {
  // Radix sort, 11 bits a pass; the index in the low half keeps ties in rising order.
  constexpr int kBits = 11, kBuckets = 1 << kBits;
  uint64_t* from = workspace->sort_a.data();
  uint64_t* to = workspace->sort_b.data();
  uint32_t counts[3][kBuckets] = {};
  for (int i = 0; i < n; ++i) {
    const uint32_t key = DescendingKey(priority[i]);
    from[i] = uint64_t{key} << 32 | static_cast<uint32_t>(i);
    ++counts[0][key & (kBuckets - 1)];
    ++counts[1][key >> kBits & (kBuckets - 1)];
    ++counts[2][key >> (2 * kBits)];
  }
  for (int pass = 0; pass < 3; ++pass) {
    const int shift = 32 + pass * kBits;
    uint32_t* count = counts[pass];
    if (n > 0 && count[(from[0] >> shift) & (kBuckets - 1)] == static_cast<uint32_t>(n)) continue;  // all in one bucket
    uint32_t sum = 0;
    for (int b = 0; b < kBuckets; ++b) {
      const uint32_t size = count[b];
      count[b] = sum;
      sum += size;
    }
    for (int i = 0; i < n; ++i) to[count[(from[i] >> shift) & (kBuckets - 1)]++] = from[i];
    std::swap(from, to);
  }
  for (int i = 0; i < n; ++i) {
    const int op = static_cast<int>(from[i] & 0xffffffffu);
    workspace->op_at_rank[i] = op;
    workspace->rank_of_op[op] = i;
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
  if (problem_.n_devices == 1) {
    if (timeline) {
      Run<false, true>(problem_, candidate, workspace, result, timeline).Go();
    } else {
      Run<false, false>(problem_, candidate, workspace, result, timeline).Go();
    }
  } else if (timeline) {
    Run<true, true>(problem_, candidate, workspace, result, timeline).Go();
  } else {
    Run<true, false>(problem_, candidate, workspace, result, timeline).Go();
  }
}

}  // namespace tf_regal
