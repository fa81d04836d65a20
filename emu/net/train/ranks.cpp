#include "emu/net/train/ranks.hpp"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// Values one after another in the form that this program has in memory: all ranks run the same
/// program.
class ResultWriter {
 public:
  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(values.size());
    if constexpr (std::is_trivially_copyable_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    } else {
      for (const T& value : values) (*this)(value);
    }
  }
  void operator()(const Elements& values) { (*this)(std::vector<float>(values)); }
  std::string bytes() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ResultReader {
 public:
  explicit ResultReader(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  void operator()(T& value) {
    take(&value, sizeof value);
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    std::size_t count = 0;
    (*this)(count);
    if (count > bytes_.size()) fail();
    values.resize(count);
    if constexpr (std::is_trivially_copyable_v<T>) {
      take(values.data(), count * sizeof(T));
    } else {
      for (T& value : values) (*this)(value);
    }
  }

  void operator()(Elements& values) {
    std::vector<float> own;
    (*this)(own);
    values = std::move(own);
  }

 private:
  [[noreturn]] static void fail() { throw Error("ranks: a message is cut short"); }
  void take(void* to, std::size_t size) {
    if (size > bytes_.size() - next_) fail();
    if (size > 0) std::memcpy(to, bytes_.data() + next_, size);
    next_ += size;
  }

  const std::string& bytes_;
  std::size_t next_ = 0;
};

template <class Result, class Visit>
void visit_result(Result& result, Visit& visit) {
  std::size_t tensors = result.gradients.size(), buffers = result.buffers.size();
  visit(tensors);
  visit(buffers);
  if constexpr (!std::is_const_v<Result>) {
    result.gradients.resize(tensors);
    result.buffers.resize(buffers);
  }
  for (auto& tensor : result.gradients) {
    visit(tensor.shape);
    visit(tensor.data);
  }
  for (auto& buffer : result.buffers) {
    visit(buffer.node);
    visit(buffer.update.parameter);
    visit(buffer.update.momentum);
    visit(buffer.update.statistics);
  }
  visit(result.counts);
  visit(result.seen.loss);
  visit(result.seen.right);
  visit(result.seen.counted);
}

}  // namespace

void require_equal(Ranks& ranks, const std::string& text, const std::string& what) {
  for (std::int64_t rank = 0; rank < ranks.count(); ++rank) {
    std::string other = text;
    ranks.broadcast(rank, other);
    if (other != text)
      throw Error(fmt::format("{} differ between ranks {} and {}", what, rank, ranks.rank()));
  }
}

void share(Ranks& ranks, std::int64_t owner, WorkerResult& result) {
  if (ranks.count() == 1) return;
  std::string bytes;
  if (ranks.rank() == owner) {
    ResultWriter writer;
    visit_result(std::as_const(result), writer);
    bytes = std::move(writer).bytes();
  }
  ranks.broadcast(owner, bytes);
  if (ranks.rank() == owner) return;
  ResultReader reader(bytes);
  visit_result(result, reader);
}

}  // namespace numemu::net
