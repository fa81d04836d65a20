#include "policies/numerics/stored_tensor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "formats/blocks/block_convert.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/error.hpp"
#include "formats/storage/packing.hpp"
#include "policies/numerics/operands/weight_tiles.hpp"
#include "policies/numerics/quantized_tensor.hpp"

namespace numemu::policies {
namespace {

constexpr double kStoredFloat32Bits = 32, kStoredScaleBits = 32;

BlockLayout lines_of(const RolePolicy& policy, std::int64_t n, std::int64_t length) {
  return block_layout(*policy.block, {length == 0 ? 0 : n / length, length}, 1);
}

constexpr int kSignBits = 2, kPositiveBits = 1;

std::int64_t last_axis(const net::Shape& shape) { return shape.empty() ? 1 : shape.back(); }

std::int64_t sample_size(const net::Shape& shape) {
  return shape.empty() || shape[0] == 0 ? 1 : net::element_count(shape) / shape[0];
}

/// Bytes written one array after another, and read back in the same order.
class Bytes {
 public:
  explicit Bytes(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  void write(const void* from, std::size_t n) {
    const auto* p = static_cast<const std::uint8_t*>(from);
    bytes_.insert(bytes_.end(), p, p + n);
  }
  void write_codes(const Format& format, const void* codes, std::int64_t n) {
    if (format.bits > 8) return write(codes, static_cast<std::size_t>(n * container_bytes(format)));
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + static_cast<std::size_t>(packed_row_bytes(n, format.bits)));
    pack_codes(static_cast<const std::uint8_t*>(codes), 1, n, format.bits, BitOrder::low_first,
               bytes_.data() + begin);
  }

 private:
  std::vector<std::uint8_t>& bytes_;
};

class ReadBytes {
 public:
  explicit ReadBytes(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  void read(void* to, std::size_t n) { std::memcpy(to, take(n), n); }
  void read_codes(const Format& format, void* codes, std::int64_t n) {
    if (format.bits > 8) return read(codes, static_cast<std::size_t>(n * container_bytes(format)));
    unpack_codes(take(static_cast<std::size_t>(packed_row_bytes(n, format.bits))), 1, n,
                 format.bits, BitOrder::low_first, static_cast<std::uint8_t*>(codes));
  }

 private:
  const std::uint8_t* take(std::size_t n) {
    if (n > bytes_.size() - at_) throw Error("a saved tensor is shorter than its shape");
    at_ += n;
    return bytes_.data() + at_ - n;
  }
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
};

/// The arrays of a tensor by blocks.
struct BlockBuffers {
  std::vector<std::uint8_t> codes, scales, shifts;
  float tensor_scale = 1;
  std::size_t shift_bytes = 0;  ///< of one zero point or minimum

  BlockBuffers(const BlockFormat& f, const BlockLayout& layout)
      : codes(static_cast<std::size_t>(layout.elements() * container_bytes(*f.element))),
        scales(static_cast<std::size_t>(layout.blocks * container_bytes(*f.scale))) {
    shift_bytes = f.affine == Affine::sym   ? 0
                  : f.affine == Affine::min ? sizeof(float)
                                            : static_cast<std::size_t>(container_bytes(*f.element));
    shifts.resize(static_cast<std::size_t>(layout.blocks) * shift_bytes);
  }
  void* shift_data() { return shift_bytes == 0 ? nullptr : shifts.data(); }
};

}  // namespace

std::int64_t stored_groups(const RolePolicy& policy, const net::Shape& shape,
                           std::int64_t samples) {
  const std::int64_t n = net::element_count(shape);
  if (policy.granularity == Granularity::tensor || shape.empty() || n == 0)
    return n % samples == 0 ? samples : 1;
  return policy.granularity == Granularity::channel ? shape[0] : n / shape.back();
}

FlagCounts fake_quantize(const RoleQuantizer& quantizer, const net::Shape& shape, float* x,
                         std::int64_t samples, const RandomPiece& random) {
  const RolePolicy& policy = quantizer.policy();
  const std::int64_t n = net::element_count(shape);
  if (n == 0) return {};
  if (!quantizer.blocks()) {
    thread_local QuantizedTensor scratch;
    quantize_tensor(quantizer, x, n,
                    choose_scales(quantizer, x, n, stored_groups(policy, shape, samples)), random,
                    scratch);
    scratch.values(x);
    return scratch.flags;
  }
  const std::int64_t shares = policy.block->tensor_scale && n % samples == 0 ? samples : 1;
  const std::int64_t share = n / shares;
  const BlockLayout layout = lines_of(policy, share, last_axis(shape));
  thread_local std::vector<float> y;
  y.resize(static_cast<std::size_t>(share));
  FlagCounts flags;
  for (std::int64_t s = 0; s < shares; ++s) {
    const std::int64_t first = s * share;
    flags +=
        quantizer.quantize(layout, x + first, {random.source, random.first + first}, {}, y.data())
            .elements;
    std::copy(y.begin(), y.end(), x + first);
  }
  return flags;
}

std::vector<std::uint8_t> pack(const RoleQuantizer& quantizer, const net::Tensor& tensor,
                               const RandomPiece& random, FlagCounts& flags) {
  const RolePolicy& policy = quantizer.policy();
  std::vector<std::uint8_t> packed;
  Bytes out(packed);
  if (tensor.empty()) return packed;
  const float* const x = tensor.data.data();
  if (!quantizer.blocks()) {
    QuantizedTensor q;
    quantize_tensor(
        quantizer, x, tensor.size(),
        choose_scales(quantizer, x, tensor.size(), stored_groups(policy, tensor.shape, 1)), random,
        q);
    flags = q.flags;
    out.write(q.scales.data(), q.scales.size() * sizeof(float));
    out.write_codes(*q.format, q.codes(), tensor.size());
    return packed;
  }
  const BlockFormat& format = *policy.block;
  const BlockLayout layout = lines_of(policy, tensor.size(), sample_size(tensor.shape));
  BlockBuffers buffers(format, layout);
  flags = quantizer
              .quantize(layout, x, random,
                        {.codes = buffers.codes.data(),
                         .scales = buffers.scales.data(),
                         .zero_points = buffers.shift_data(),
                         .tensor_scale = &buffers.tensor_scale},
                        nullptr)
              .elements;
  out.write(&buffers.tensor_scale, sizeof(float));
  out.write(buffers.scales.data(), buffers.scales.size());
  out.write(buffers.shifts.data(), buffers.shifts.size());
  out.write_codes(*format.element, buffers.codes.data(), tensor.size());
  return packed;
}

net::Tensor restore_packed(const RoleQuantizer& quantizer, const net::Shape& shape,
                           const std::vector<std::uint8_t>& packed) {
  const RolePolicy& policy = quantizer.policy();
  net::Tensor tensor(shape);
  if (tensor.empty()) return tensor;
  ReadBytes in(packed);
  if (!quantizer.blocks()) {
    QuantizedTensor q;
    q.format = policy.format;
    q.scales.resize(static_cast<std::size_t>(stored_groups(policy, shape, 1)));
    q.narrow.resize(q.is_narrow() ? tensor.data.size() : 0);
    q.wide.resize(q.is_narrow() ? 0 : tensor.data.size());
    in.read(q.scales.data(), q.scales.size() * sizeof(float));
    in.read_codes(*q.format, q.is_narrow() ? static_cast<void*>(q.narrow.data()) : q.wide.data(),
                  tensor.size());
    q.values(tensor.data.data());
    return tensor;
  }
  const BlockFormat& format = *policy.block;
  const BlockLayout layout = lines_of(policy, tensor.size(), sample_size(shape));
  BlockBuffers buffers(format, layout);
  in.read(&buffers.tensor_scale, sizeof(float));
  in.read(buffers.scales.data(), buffers.scales.size());
  in.read(buffers.shifts.data(), buffers.shifts.size());
  in.read_codes(*format.element, buffers.codes.data(), tensor.size());
  BlockSource source;
  source.codes = buffers.codes.data();
  source.scales = buffers.scales.data();
  source.zero_points = buffers.shift_data();
  source.tensor_scale = buffers.tensor_scale;
  dequantize_blocks(format, layout, source, tensor.data.data());
  return tensor;
}

std::vector<std::uint8_t> pack_signs(const net::Tensor& tensor) {
  std::vector<std::uint8_t> codes, packed;
  codes.reserve(tensor.data.size());
  int bits = kPositiveBits;
  for (const float x : tensor.data) {
    codes.push_back(std::isnan(x) ? 3 : static_cast<std::uint8_t>((x > 0) + 2 * (x < 0)));
    if (codes.back() > 1) bits = kSignBits;
  }
  // The length tells which: a few elements take as many bytes in either.
  if (packed_row_bytes(tensor.size(), kPositiveBits) == packed_row_bytes(tensor.size(), kSignBits))
    bits = kSignBits;
  packed.resize(static_cast<std::size_t>(packed_row_bytes(tensor.size(), bits)));
  pack_codes(codes.data(), 1, tensor.size(), bits, BitOrder::low_first, packed.data());
  return packed;
}

net::Tensor restore_signs(const net::Shape& shape, const std::vector<std::uint8_t>& packed) {
  constexpr std::array<float, 4> kSigns{0, 1, -1, std::numeric_limits<float>::quiet_NaN()};
  net::Tensor tensor(shape);
  std::vector<std::uint8_t> codes(tensor.data.size());
  const int bits =
      std::ssize(packed) < packed_row_bytes(tensor.size(), kSignBits) ? kPositiveBits : kSignBits;
  if (std::ssize(packed) < packed_row_bytes(tensor.size(), bits))
    throw Error("a saved tensor is shorter than its shape");
  unpack_codes(packed.data(), 1, tensor.size(), bits, BitOrder::low_first, codes.data());
  for (std::size_t i = 0; i < codes.size(); ++i) tensor.data[i] = kSigns[codes[i]];
  return tensor;
}

std::int64_t line_length(const RolePolicy& policy, const net::Shape& shape, std::int64_t depth) {
  if (shape.empty()) return 1;
  if (policy.axis != BlockAxis::reduction) return shape.back();
  if (depth > 0) return depth;
  return shape[0] == 0 ? 0 : net::element_count(shape) / shape[0];
}

double stored_bits(const std::optional<RolePolicy>& policy, const net::Shape& shape,
                   std::int64_t depth) {
  const std::int64_t n = net::element_count(shape);
  const std::int64_t last = shape.empty() ? 1 : shape.back();
  if (n == 0) return 0;
  if (!policy) return kStoredFloat32Bits * static_cast<double>(n);
  if (policy->granularity == Granularity::tile) {
    const BlockFormat& block = *policy->block;
    const double scales =
        static_cast<double>(WeightTiles(shape, policy->tile_rows(), block.size).count());
    return block.element->bits * static_cast<double>(n) + scales * block.scale_bits() +
           (block.tensor_scale ? kStoredScaleBits : 0);
  }
  if (policy->block != nullptr) {
    const std::int64_t length = line_length(*policy, shape, depth);
    const std::int64_t lines = std::max<std::int64_t>(1, n / length);
    return static_cast<double>(n) *
           stored_bits(*policy->block, block_layout(*policy->block, {lines, length}, 1));
  }
  const std::int64_t groups = policy->granularity == Granularity::channel ? shape[0]
                              : policy->granularity == Granularity::row   ? n / last
                                                                          : 1;
  const std::int64_t scales = policy->stores_scale() ? groups : 0;
  return policy->format->bits * static_cast<double>(n) +
         kStoredScaleBits * static_cast<double>(scales);
}

}  // namespace numemu::policies
