// The planning problem as the core sees it: flat arrays, checked once, with the reverse edges added.
// docs/simulator.md explains every array; names are the same there, in Python and here.
#ifndef TF_REGAL_OPS_PROBLEM_H_
#define TF_REGAL_OPS_PROBLEM_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace tf_regal {

constexpr int kMaxDevices = 64;  // sets of devices are 64-bit masks
constexpr uint8_t kLifetimeNormal = 0;
constexpr uint8_t kLifetimeOutput = 1;
constexpr uint8_t kLifetimePersistent = 2;

// Rows of variable length: row i is idx[ptr[i]] … idx[ptr[i + 1] - 1].
struct Csr {
  std::vector<int32_t> ptr{0};
  std::vector<int32_t> idx;

  const int32_t* begin(int row) const { return idx.data() + ptr[row]; }
  const int32_t* end(int row) const { return idx.data() + ptr[row + 1]; }
  int size(int row) const { return ptr[row + 1] - ptr[row]; }
  int rows() const { return static_cast<int>(ptr.size()) - 1; }
};

// The transpose: row j lists, in rising order, the rows of `csr` that contain j.
Csr Transpose(const Csr& csr, int columns);

struct Problem {
  int n_ops = 0, n_tensors = 0, n_devices = 0, n_groups = 0;

  // Given (row-major where two-dimensional).
  std::vector<int64_t> duration, scratch;  // [n_ops, n_devices]
  std::vector<int64_t> persistent;         // [n_ops]
  std::vector<int32_t> group;              // [n_ops]
  std::vector<int32_t> producer, view;     // [n_tensors]
  std::vector<int64_t> size;               // [n_tensors]
  std::vector<uint8_t> lifetime;           // [n_tensors]
  Csr reuse;                               // tensor -> tensors; Finish() drops what an output of the same op is a view of
  Csr inputs;                              // op -> tensors
  Csr control;                             // op -> ops
  std::vector<int32_t> lanes;              // [n_devices]
  std::vector<int64_t> capacity;           // [n_devices]
  std::vector<int64_t> latency;            // [n_devices, n_devices]
  std::vector<double> ns_per_byte;         // [n_devices, n_devices]
  bool blocking_transfers = false;

  // Derived by Finish().
  Csr outputs;                             // op -> tensors
  Csr consumers;                           // tensor -> ops
  Csr control_successors;                  // op -> ops
  std::vector<int32_t> n_predecessors;     // [n_ops] input tensors + control predecessors
  std::vector<int32_t> topological_order;  // [n_ops]
  std::vector<uint64_t> allowed;           // [n_groups] mask of devices where all its ops may run

  // Checks everything and fills the derived fields. Throws std::invalid_argument that names the array.
  void Finish();

  int64_t TransferTime(int tensor, int src, int dst) const;
  int64_t ShortestDuration(int op) const;  // ns, of the devices where it may run

  // The tensor whose buffer a tensor lives in: the end of its chain of views, or of those up to a persistent one.
  int32_t Root(int32_t tensor) const;

  // Lower bounds of the makespan (ns) and of the largest per-device peak (bytes); see docs/simulator.md.
  std::pair<int64_t, int64_t> Bounds() const;

 private:
  void CheckShapes() const;
  void CheckValues() const;
  void CheckTotals() const;
  void DropImpossibleReuse();
  int64_t ShortestMakespan() const;
  int64_t AllocatedAtLeast(int op) const;
  int64_t LargestWorkingSet() const;
  int64_t LargestLiveSet() const;
};

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_PROBLEM_H_
