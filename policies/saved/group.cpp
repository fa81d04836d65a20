// Activation compressor group: tensors kept for backward become unbiased codes of few bits, a scale
// and a minimum for each group of a sample (ActNN, Chen et al., ICML 2021). Only copies that a
// gradient is linear in are rounded; signs stay exact in 1 or 2 bits each.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

#include "emu/net/ops/elementwise.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "policies/bits/sample_bits.hpp"
#include "policies/canonical_json.hpp"
#include "policies/numerics/random_identity.hpp"
#include "policies/numerics/stored_tensor.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/state_bytes.hpp"

namespace numemu::policies {
namespace {

constexpr int kRandomBits = 16;
constexpr const char* kGroupState = "recipe/saved/group/bits/";
constexpr const char* kFixed = "fixed";
constexpr const char* kFormat = "uint2";
constexpr const char *kWhole = "float32", *kHalf = "bfloat16";  // minima

/// The average of "greedy(B)"; nothing for "fixed".
std::optional<double> average_of(const std::string& text) {
  if (text == kFixed) return std::nullopt;
  const CallText call = parse_call(text);
  const std::optional<double> bits = call.name == "greedy" && call.arguments.size() == 1
                                         ? number_argument(call.arguments[0])
                                         : std::nullopt;
  if (!bits || !(*bits >= 1 && *bits <= kMostItemBits))
    throw Error(fmt::format("expected fixed, or greedy(B) with B from 1 to {}, not '{}'",
                            kMostItemBits, text));
  return bits;
}

constexpr TextKind kBits{"fixed or greedy(B)", [](const std::string& text) {
                           const std::optional<double> bits = average_of(text);
                           return bits ? fmt::format("greedy({})", ecmascript_number(*bits))
                                       : std::string(kFixed);
                         }};

struct GroupOptions final : PolicyOptions {
  std::string format = kFormat, bits = kFixed, minimum = kWhole;
  std::int64_t group = 256;
  std::vector<Option> list() override {
    return {{"format",
             "of the codes; greedy: uint2, without effect",
             &format,
             0,
             0,
             {"uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7", "uint8"}},
            {"group", "neighbours of a sample, all its axes taken as one, that share a scale",
             &group, 1, kLargestBlock},
            {"bits",
             "fixed: those of the format for every tensor; greedy: 1 to 8 for each sample of each "
             "tensor, B on average",
             &bits,
             0,
             0,
             {},
             &kBits},
            {"minimum",
             "of a group, as it is kept; bfloat16: rounded downward, which the smallest element "
             "becomes",
             &minimum,
             0,
             0,
             {kWhole, kHalf}}};
  }

  /// Stochastic codes between the minimum and the maximum of a group: the scale,
  /// range / largest code rounded upward to bfloat16, clips nothing, so that the mean of what is
  /// given back is the element, to 2^-17 of a step.
  RoleQuantizer quantizer(const std::string& codes) const {
    RolePolicy policy;
    policy.block = &find_block_format(fmt::format("group({},{},bfloat16,min)", codes, group));
    policy.format = policy.block->element;
    policy.rounding = {RoundingMode::sr, StochasticVariant::c, kRandomBits};
    policy.scale = policy.block->default_rule;
    policy.granularity = Granularity::block;
    return RoleQuantizer(policy);
  }
};

/// The samples with the smallest elements of each group rounded downward to bfloat16: no other
/// element changes, and none clips.
net::Tensor with_short_minima(net::Tensor x, std::int64_t group) {
  const std::int64_t each = x.empty() ? 0 : x.size() / x.dim(0);
  for (std::int64_t first = 0; first < x.size();) {
    const std::int64_t last = std::min(first + group, (first / each + 1) * each);
    const auto begin = x.data.begin() + first, end = x.data.begin() + last;
    const float least = *std::min_element(begin, end);
    constexpr std::uint32_t kLow = 0xffff;
    auto word = std::bit_cast<std::uint32_t>(least);
    if (least < 0 && (word & kLow) != 0) word += kLow + 1;
    std::replace(begin, end, least, std::bit_cast<float>(word & ~kLow));
    first = last;
  }
  return x;
}

/// Where pack() has the minima of so many groups: behind the tensor scale and the scales.
std::size_t minima_at(std::int64_t groups) {
  constexpr std::size_t kTensorScale = 4, kScale = 2;
  return kTensorScale + kScale * static_cast<std::size_t>(groups);
}

/// What pack() gives without the low halves of the minima, which are 0; and with them again.
std::vector<std::uint8_t> shortened(const std::vector<std::uint8_t>& packed, std::int64_t groups) {
  const std::size_t at = minima_at(groups), count = static_cast<std::size_t>(groups);
  std::vector<std::uint8_t> out(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t i = 0; i < count; ++i)
    out.insert(out.end(), {packed[at + 4 * i + 2], packed[at + 4 * i + 3]});
  out.insert(out.end(), packed.begin() + static_cast<std::ptrdiff_t>(at + 4 * count), packed.end());
  return out;
}
std::vector<std::uint8_t> lengthened(const std::vector<std::uint8_t>& packed, std::int64_t groups) {
  const std::size_t at = minima_at(groups), count = static_cast<std::size_t>(groups);
  if (packed.size() < at + 2 * count) throw Error("a saved tensor is shorter than its shape");
  std::vector<std::uint8_t> out(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t i = 0; i < count; ++i)
    out.insert(out.end(), {0, 0, packed[at + 2 * i], packed[at + 2 * i + 1]});
  out.insert(out.end(), packed.begin() + static_cast<std::ptrdiff_t>(at + 2 * count), packed.end());
  return out;
}

/// How the tensors of a layer become bytes, samples of equal bits at a time.
struct Packing {
  std::vector<RoleQuantizer> by_bits;  ///< one of the format, or those of 1 to 8 bits
  std::int64_t group = 0;
  bool is_short = false;  ///< minima in bfloat16

  std::int64_t groups(std::int64_t samples, std::int64_t each) const {
    return samples * ((each + group - 1) / group);
  }
  std::vector<std::uint8_t> bytes(const RoleQuantizer& quantizer, const net::Tensor& x,
                                  const RandomPiece& random) const {
    FlagCounts flags;
    if (!is_short || x.empty()) return pack(quantizer, x, random, flags);
    return shortened(pack(quantizer, with_short_minima(x, group), random, flags),
                     groups(x.dim(0), x.size() / x.dim(0)));
  }
  net::Tensor tensor(const RoleQuantizer& quantizer, const net::Shape& shape,
                     const std::vector<std::uint8_t>& packed) const {
    const std::int64_t n = net::element_count(shape);
    if (!is_short || n == 0) return restore_packed(quantizer, shape, packed);
    return restore_packed(quantizer, shape, lengthened(packed, groups(shape[0], n / shape[0])));
  }
};

/// The bits of every sample, a byte each; then for 1 to 8 bits the samples that have them: the
/// length in bytes as 64 bits, and what pack() gives. Random bits by the place in this order.
std::vector<std::uint8_t> pack_samples(const Packing& packing, const std::vector<int>& bits,
                                       const net::Tensor& x, const RandomSource& random) {
  std::vector<std::uint8_t> packed(bits.begin(), bits.end());
  if (x.empty()) return packed;
  const std::int64_t each = x.size() / x.dim(0);
  std::int64_t before = 0;
  for (int b = 1; b <= kMostItemBits; ++b) {
    net::Tensor of_bits({0, each});
    for (std::size_t n = 0; n < bits.size(); ++n) {
      if (bits[n] != b) continue;
      const auto item = static_cast<std::size_t>(each);
      of_bits.data.append(std::span(x.data).subspan(n * item, item));
      ++of_bits.shape[0];
    }
    if (of_bits.empty()) continue;
    const std::vector<std::uint8_t> piece =
        packing.bytes(packing.by_bits[static_cast<std::size_t>(b - 1)], of_bits, {random, before});
    const std::string length = to_bytes({piece.size()});
    packed.insert(packed.end(), length.begin(), length.end());
    packed.insert(packed.end(), piece.begin(), piece.end());
    before += of_bits.size();
  }
  return packed;
}

net::Tensor restore_samples(const Packing& packing, const net::Shape& shape,
                            const std::vector<std::uint8_t>& packed) {
  net::Tensor x(shape);
  if (x.empty()) return x;
  const auto samples = static_cast<std::size_t>(shape[0]);
  const std::int64_t each = x.size() / shape[0];
  std::size_t at = samples;
  const auto take = [&](std::size_t n) {
    if (at > packed.size() || n > packed.size() - at)
      throw Error("a saved tensor is shorter than its shape");
    at += n;
    return packed.begin() + static_cast<std::ptrdiff_t>(at - n);
  };
  take(0);
  for (int b = 1; b <= kMostItemBits; ++b) {
    std::vector<std::size_t> places;
    for (std::size_t n = 0; n < samples; ++n) {
      if (packed[n] == b) places.push_back(n);
    }
    if (places.empty()) continue;
    constexpr std::size_t kLength = 8;
    const auto number = take(kLength);
    const std::size_t length =
        from_bytes("saved", {number, number + static_cast<std::ptrdiff_t>(kLength)})[0];
    const auto piece = take(length);
    const net::Tensor of_bits =
        packing.tensor(packing.by_bits[static_cast<std::size_t>(b - 1)],
                       {static_cast<std::int64_t>(places.size()), each},
                       {piece, piece + static_cast<std::ptrdiff_t>(length)});
    for (std::size_t i = 0; i < places.size(); ++i)
      std::copy_n(of_bits.data.begin() + static_cast<std::ptrdiff_t>(i) * each, each,
                  x.data.begin() + static_cast<std::ptrdiff_t>(places[i]) * each);
  }
  return x;
}

class Group final : public Policy {
 public:
  Group(Binding binding, net::Numerics& inner) : Policy(std::move(binding), inner) {
    std::map<std::string, double, std::less<>> averages;
    for (const auto& [layer, given] : this->binding().layers) {
      const std::string& where = this->binding().where;
      if (this->binding().recipe.layer(layer)[RolePart::saved]) {
        throw Error(fmt::format(
            "{}: group contradicts roles.saved of layer {}: expected one of them", where, layer));
      }
      const auto& options = static_cast<const GroupOptions&>(*given);
      const std::optional<double> average = average_of(options.bits);
      Packing& packing = packings_[layer];
      packing.group = options.group;
      packing.is_short = options.minimum == kHalf;
      if (!average) {
        packing.by_bits = {options.quantizer(options.format)};
        continue;
      }
      if (options.format != kFormat) {
        throw Error(
            fmt::format("{}: layer {}: format {} contradicts bits {}: expected no format, or {}, "
                        "without effect",
                        where, layer, options.format, options.bits, kFormat));
      }
      averages[layer] = *average;
      for (int b = 1; b <= kMostItemBits; ++b)
        packing.by_bits.push_back(options.quantizer(fmt::format("uint{}", b)));
    }
    if (!averages.empty()) bits_.emplace(this->binding().recipe.graph(), std::move(averages));
  }

  net::Saved save(const net::Step& step, const net::Kept& kept,
                  const net::SharedTensor& tensor) override {
    const Packing* const packing = find(kept);
    if (packing == nullptr) return Forwarding::save(step, kept, tensor);
    net::Saved saved{.tensor = nullptr, .shape = tensor->shape};
    const RandomSource random =
        stored_random(binding().recipe->seed(), kept.layer, "saved", step, "save");
    if (kept.use == net::Use::sign) {
      saved.packed = pack_signs(*tensor);
    } else if (packing->by_bits.size() > 1) {
      saved.packed = pack_samples(*packing, bits_->choose(kept.layer, *tensor, packing->group),
                                  *tensor, random);
    } else {
      saved.packed = packing->bytes(packing->by_bits.front(), *tensor, {random, 0});
    }
    return saved;
  }

  net::SharedTensor restore(const net::Step& step, const net::Kept& kept,
                            net::Saved saved) override {
    const Packing* const packing = find(kept);
    if (packing == nullptr) return Forwarding::restore(step, kept, std::move(saved));
    return std::make_shared<const net::Tensor>(
        kept.use == net::Use::sign ? restore_signs(saved.shape, saved.packed)
        : packing->by_bits.size() > 1
            ? restore_samples(*packing, saved.shape, saved.packed)
            : packing->tensor(packing->by_bits.front(), saved.shape, saved.packed));
  }

  void edge(const net::Step& step, const net::Edge& edge, net::Tensor& tensor) override {
    Forwarding::edge(step, edge, tensor);
    if (bits_ && edge.backward) bits_->see_gradient(edge.layer, tensor);
  }
  void end_step(const net::Step& step) override {
    Forwarding::end_step(step);
    if (bits_ && step.phase == net::Phase::training) bits_->end_step();
  }

  void save_state(net::NamedState& state) const override {
    Forwarding::save_state(state);
    if (!bits_) return;
    for (const auto& [value, bits] : bits_->next())
      state.emplace_back(kGroupState + value, to_bytes({bits_of(bits)}));
  }
  void load_state(const net::NamedState& state) override {
    Forwarding::load_state(state);
    if (!bits_) return;
    for (const auto& [name, bytes] : state) {
      if (!name.starts_with(kGroupState)) continue;
      const std::vector<std::uint64_t> numbers = from_bytes(name, bytes);
      bits_->restore(name.substr(std::strlen(kGroupState)),
                     numbers.size() == 1 ? double_of(numbers[0]) : 0, "state " + name);
    }
  }

 private:
  /// Null where the tensor is kept by the inner numerics.
  const Packing* find(const net::Kept& kept) const {
    if (kept.use != net::Use::linear && kept.use != net::Use::sign) return nullptr;
    const auto found = packings_.find(kept.layer);
    return found == packings_.end() ? nullptr : &found->second;
  }

  std::map<std::string, Packing, std::less<>> packings_;  ///< by layer
  std::optional<SampleBits> bits_;                        ///< of layers with greedy bits
};

}  // namespace

extern const PolicyKind saved_group{
    .key = "saved",
    .name = "group",
    .summary = "tensors kept for backward become stochastic codes of few bits in groups",
    .source = "Chen et al., ICML 2021 (ActNN, arXiv 2104.14129)",
    .options = make_options<GroupOptions>,
    .bind = make_policy<Group>,
    .usual = true};

}  // namespace numemu::policies
