#include "policies/mask/weight_mask.hpp"

#include <fmt/format.h>

#include <cstring>

#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "policies/state_bytes.hpp"

namespace numemu::policies {

MaskLayout weight_layout(const MaskPolicy& policy, const net::Shape& shape, std::int64_t matrices) {
  const std::int64_t size = net::element_count(shape), outputs = shape.empty() ? 1 : shape[0];
  const std::int64_t width =
      policy.axis == MaskAxis::reduction ? size / std::max<std::int64_t>(1, outputs) : shape.back();
  const std::int64_t parts = matrices > 0 && outputs % matrices == 0 ? matrices : 1;
  const std::int64_t rows = outputs / parts;
  return {parts, rows, size == 0 ? 1 : size / (outputs * width), width, false};
}

RandomSource mask_source(std::uint64_t seed, const std::string& identity) {
  RandomSource source;
  source.seed = seed;
  source.stream = Stream::mask;
  source.tensor = tensor_word(identity);
  return source;
}

RandomSource weight_mask_random(std::uint64_t seed, std::string_view layer,
                                const MaskPolicy& policy) {
  const char* axis = policy.rule->span == MaskSpan::tensor ? "element"
                     : policy.axis == MaskAxis::reduction  ? "reduction"
                                                           : "channel";
  return mask_source(seed, fmt::format("{}/weight/0/mask-{}", layer, axis));
}

net::Tensor WeightMask::made(const net::Tensor& weight, std::int64_t matrices) const {
  const MaskLayout layout = weight_layout(policy_, weight.shape, matrices);
  net::Tensor out(weight.shape);
  if (!keep_.empty()) {
    require_size(weight);
    apply_mask(policy_, layout, weight.data.data(), keep_.data(), out.data.data());
  } else {
    mask_tensor(policy_, random_, layout, 0, 0, weight.data.data(), out.data.data(), nullptr);
  }
  return out;
}

std::vector<std::uint8_t> WeightMask::mask_of(const net::Tensor& weight,
                                              std::int64_t matrices) const {
  std::vector<std::uint8_t> keep(weight.data.size());
  mask_tensor(policy_, random_, weight_layout(policy_, weight.shape, matrices), 0, 0,
              weight.data.data(), nullptr, keep.data());
  return keep;
}

std::vector<std::uint8_t> WeightMask::keep_of(const net::Tensor& weight,
                                              std::int64_t matrices) const {
  if (keep_.empty()) return mask_of(weight, matrices);
  require_size(weight);
  return keep_;
}

void WeightMask::require_size(const net::Tensor& weight) const {
  if (keep_.size() == weight.data.size()) return;
  throw Error(fmt::format("state {}: expected a mask of {} elements, as the weight has, found {}",
                          loaded_, weight.data.size(), keep_.size()));
}

std::shared_ptr<const net::Tensor> WeightMask::in_step(const net::Tensor& weight,
                                                       std::int64_t matrices, std::int64_t step) {
  if (cached_ && cached_step_ == step) return cached_;
  const std::int64_t every = policy_.refresh;
  const bool due = keep_.empty() || (every > 0 && step % every == 0);
  if (every != 1 && due) {
    keep_ = mask_of(weight, matrices);
    const std::lock_guard lock(mutex_);
    passing_.reset();  // of the mask before
  }
  cached_ = std::make_shared<const net::Tensor>(made(weight, matrices));
  cached_step_ = step;
  return cached_;
}

std::shared_ptr<const net::Tensor> WeightMask::fixed(const net::Tensor& weight,
                                                     std::int64_t matrices) {
  const std::lock_guard lock(mutex_);
  if (!cached_ || cached_step_) {
    cached_ = std::make_shared<const net::Tensor>(made(weight, matrices));
    cached_step_.reset();
  }
  return cached_;
}

std::shared_ptr<const net::Tensor> WeightMask::passing(const net::Tensor& weight,
                                                       std::int64_t matrices) const {
  const std::lock_guard lock(mutex_);
  const std::size_t bytes = weight.data.size() * sizeof(float);
  // By content: a weight may be put back without a step (the best epoch's).
  if (!passing_ || passing_of_.size() != weight.data.size() ||
      std::memcmp(passing_of_.data(), weight.data.data(), bytes) != 0) {
    passing_ = std::make_shared<const net::Tensor>(made(weight, matrices));
    passing_of_ = weight.data;
  }
  return passing_;
}

void WeightMask::fix(net::Tensor masked) {
  const std::lock_guard lock(mutex_);
  cached_ = std::make_shared<const net::Tensor>(std::move(masked));
  cached_step_.reset();
}

void WeightMask::forget() {
  const std::lock_guard lock(mutex_);
  cached_.reset();
  passing_.reset();
  cached_step_.reset();
}

void WeightMask::settle(net::Tensor& weight) const {
  if (policy_.refresh != 0 || keep_.empty()) return;
  require_size(weight);
  for (std::size_t i = 0; i < keep_.size(); ++i) {
    if (keep_[i] == 0) weight.data[i] = 0;
  }
}

std::string WeightMask::state() const {
  if (keep_.empty()) return "";
  std::vector<std::uint64_t> words(1 + (keep_.size() + 63) / 64);
  words[0] = keep_.size();
  for (std::size_t i = 0; i < keep_.size(); ++i)
    words[1 + i / 64] |= std::uint64_t{keep_[i]} << (i % 64);
  return to_bytes(words);
}

void WeightMask::load(const std::string& name, const std::string& state) {
  keep_.clear();
  loaded_ = name;
  forget();
  if (state.empty()) return;
  const std::vector<std::uint64_t> words = from_bytes(name, state);
  // The count is checked against the words there are before anything is allocated.
  if (words.empty() || words[0] == 0 || words[0] > 64 * (words.size() - 1) ||
      words[0] + 63 < 64 * (words.size() - 1)) {
    throw Error(fmt::format("state {}: expected a mask and its length, found {} bytes", name,
                            state.size()));
  }
  keep_.resize(words[0]);
  for (std::size_t i = 0; i < keep_.size(); ++i)
    keep_[i] = static_cast<std::uint8_t>(words[1 + i / 64] >> (i % 64) & 1);
}

}  // namespace numemu::policies
