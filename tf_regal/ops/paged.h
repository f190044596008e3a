// Arrays that are walked in random order: aligned to cache lines and, where they are large, on huge pages, since most of their
// accesses would miss the TLB otherwise.
#ifndef TF_REGAL_OPS_PAGED_H_
#define TF_REGAL_OPS_PAGED_H_

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tf_regal {

template <typename T>
struct PagedAllocator {
  using value_type = T;
  static constexpr size_t kLine = 64, kHugePage = size_t{1} << 21;

  PagedAllocator() = default;
  template <typename U>
  PagedAllocator(const PagedAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t n) {
    const size_t alignment = n * sizeof(T) >= kHugePage ? kHugePage : kLine;
    const size_t bytes = (n * sizeof(T) + alignment - 1) / alignment * alignment;
    void* p = std::aligned_alloc(alignment, bytes);
    if (p == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (alignment == kHugePage) madvise(p, bytes, MADV_HUGEPAGE);  // a hint: where it fails, pages are small
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t) { std::free(p); }

  template <typename U>
  bool operator==(const PagedAllocator<U>&) const {
    return true;
  }
  template <typename U>
  bool operator!=(const PagedAllocator<U>&) const {
    return false;
  }
};

template <typename T>
using PagedVector = std::vector<T, PagedAllocator<T>>;

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_PAGED_H_
