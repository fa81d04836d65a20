#include "policies/numerics/recipe_product.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "emu/net/profile.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "policies/numerics/operands/block_lines.hpp"
#include "policies/numerics/operands/gathered_side.hpp"
#include "policies/numerics/operands/operand_side.hpp"
#include "policies/numerics/operands/scaled_side.hpp"
#include "policies/numerics/operands/sliced_product.hpp"
#include "policies/numerics/operands/sparse_operand.hpp"
#include "policies/numerics/overflow_sample.hpp"
#include "policies/numerics/plain_operand.hpp"
#include "policies/numerics/random_identity.hpp"
#include "policies/numerics/stored_tensor.hpp"
#include "policies/numerics/unit_result.hpp"
#include "policies/numerics/zero_points.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {
namespace {

using net::GemmKind;

/// One side of the current product.
struct ReadSide {
  net::Side which;
  const net::ProductSide& source;
  const RoleQuantizer* quantizer;  ///< null: float32
  PlainPreparation how = {};
  bool in_order = false;  ///< the operand's rows are the source in its order
  std::int32_t zero = 0;  ///< the zero point of its codes

  bool reduction() const {
    return quantizer != nullptr && quantizer->blocks() &&
           quantizer->policy().axis == BlockAxis::reduction;
  }
  /// Blocks along the depth that are no neighbours in the source.
  bool gathered() const { return reduction() && !in_order; }
};

/// The current product, with everything it needs.
class Run {
 public:
  Run(LayerState& layer, const net::Product& product, const ProductRun& run)
      : layer_(layer),
        p_(product),
        run_(run),
        unit_(layer.recipe.unit(product.kind)),
        sampled_(unit_, run.turn()),
        multiplier_(product.kind == GemmKind::fprop ? sampled_ : unit_),
        a_(side(net::Side::a)),
        b_(side(net::Side::b)) {}

  void go() {
    if (p_.d_stack.count() * p_.m * p_.n == 0) return;
    UnitResult result(unit_, p_);
    OperandScales a, b;
    const bool scaled = unit_.description() != nullptr && unit_.description()->scaling.block != 0;
    if (sparse_side(layer_.recipe, p_.kind)) {
      multiply_compressed(result.target(), a, b);
    } else if (scaled) {
      multiply_scaled(result.target(), a, b);
    } else if (sliced(a_) || sliced(b_)) {
      multiply_sliced();
    } else if (a_.gathered() || b_.gathered()) {
      multiply_gathered(result.target(), a, b);
    } else {
      multiply_plain(result.target(), a, b);
    }
    if (p_.kind == GemmKind::fprop) {
      const std::lock_guard lock(layer_.saturation_mutex);
      layer_.saturation += result.saturation();
      layer_.saturation += sampled_.counts();
    }
    if (layer_.result_codes && p_.kind == GemmKind::fprop && run_.frozen &&
        run_.phase == net::Phase::inference) {
      result.requantize(a, b, zero_, *layer_.result_codes);
    } else {
      result.finish(a, b, zero_);
    }
    const bool weight = a_.source.role == net::Role::weight || b_.source.role == net::Role::weight;
    if (weight && !held_) layer_.reads_weight = true;
  }

  void store_output() {
    if (p_.kind != GemmKind::fprop || !layer_[RolePart::output]) return;
    RandomPiece random;
    if (layer_[RolePart::output]->stochastic()) random = piece("output", p_.d_stack.outer * p_.m);
    const bool apart = run_.frozen && run_.phase == net::Phase::inference;
    fake_quantize(*layer_[RolePart::output], {p_.d_stack.outer * p_.m, p_.d_stack.inner * p_.n},
                  p_.d, apart ? samples_of(net::Side::a) : 1, random);
  }

 private:
  ReadSide side(net::Side which) {
    const net::ProductSide& source = p_.side(which);
    ReadSide s{.which = which, .source = source, .quantizer = layer_.quantizer(p_, which)};
    if (s.quantizer == nullptr) return s;
    const RolePolicy& policy = s.quantizer->policy();
    const bool turned = sparse_side(layer_.recipe, p_.kind) == net::Side::b;
    s.how.wide = wider_operand(unit_, policy, turned ? net::other_side(which) : which);
    const bool inference = run_.phase == net::Phase::inference;
    if (s.quantizer->stochastic()) {
      s.how.random.source =
          operand_random(run_.seed, p_.layer, source.role, run_.step, p_.kind, run_.repetition);
      s.how.random.first = first_element(source);
    }
    if (source.scale && policy.history > 0) s.how.fixed = TensorScale{*source.scale};
    if (source.role != net::Role::weight && run_.frozen && inference) {
      s.how.fixed = which == net::Side::a ? layer_.activation_scale : layer_.second_scale;
      s.how.samples = samples_of(which);
    }
    // In inference only weights are read again; frozen ones keep their codes.
    if (!inference || (source.role == net::Role::weight && !run_.frozen))
      s.how.memo = &layer_.memos[static_cast<std::size_t>(layer_.operand(p_, which))];
    if (s.quantizer->blocks()) {
      // A tensor scale is one of a matrix as it is gathered.
      s.in_order = s.reduction() && source.role == net::Role::weight &&
                   !policy.block->tensor_scale && reads_in_order(p_, which);
    } else {
      s.how.groups = scale_groups(policy, layer_.operand(p_, which), p_, source, s.how.samples);
      if (!s.how.groups.of_results) require_float32(which);
      if (policy.zero_point && p_.kind != GemmKind::fprop) require_float32(which);
    }
    return s;
  }

  /// Where scales cannot wait for the results the unit reads dequantized numbers.
  void require_float32(net::Side which) const {
    if (which == net::Side::a ? unit_.accepts_a(float32()) : unit_.accepts_b(float32())) return;
    const RolePolicy& policy = layer_.quantizer(p_, which)->policy();
    throw Error(fmt::format(
        "layer {}, {}: roles.{}.{}; expected a unit that takes float32, which reads dequantized "
        "numbers, not {}",
        p_.layer, net::to_string(p_.kind), net::to_string(layer_.operand(p_, which)),
        policy.zero_point ? "zero_point 'calibrated': zero points are those of fprop"
        : policy.granularity == Granularity::row
            ? "granularity 'row': its scales vary along the depth of this product"
            : "granularity 'channel': its scales vary along the depth of this product",
        unit_.row().name));
  }

  /// How many samples of the side have scales of their own.
  std::int64_t samples_of(net::Side which) const {
    return separable_samples(p_, which, layer_.one_sample);
  }

  /// Of the source in the stream of its random bits: in inference the samples before the batch come
  /// first.
  std::int64_t first_element(const net::ProductSide& source) const {
    if (run_.phase != net::Phase::inference || source.role == net::Role::weight ||
        source.source->shape.empty() || source.source->dim(0) == 0)
      return 0;
    return run_.first_sample * (source.source->size() / source.source->dim(0));
  }

  /// The piece for lines of D, which belong to samples in equal shares.
  RandomPiece piece(std::string_view role, std::int64_t lines) const {
    RandomPiece random;
    random.source.seed = run_.seed;
    random.source.tensor =
        tensor_word(fmt::format("{}/{}/{}/{}", p_.layer, role, run_.step, net::to_string(p_.kind)));
    const std::int64_t samples = samples_of(net::Side::a);
    if (run_.phase == net::Phase::inference)
      random.first = run_.first_sample * (lines / samples) * p_.d_stack.inner * p_.n;
    return random;
  }

  net::ProductRandom unit_random() const {
    if (!layer_.stochastic_unit(p_.kind)) return {};
    // Elements of D are numbered within the batch, so each batch draws for itself.
    const std::string times = run_.repetition == 0 ? "" : fmt::format(".{}", run_.repetition);
    return {run_.seed, tensor_word(fmt::format("{}/accumulator/{}{}/{}", p_.layer, run_.turn(),
                                               times, net::to_string(p_.kind)))};
  }

  void count(const ReadSide& s, const FlagCounts& flags) {
    layer_.count(p_.kind, s.source.role).add(flags);
  }

  /// The operand is a weight that does not change any more.
  bool cached(const ReadSide& s) const {
    return run_.frozen && s.source.role == net::Role::weight && p_.kind == GemmKind::fprop &&
           run_.phase == net::Phase::inference;
  }

  /// The operand whole, in `scratch` unless it is a weight that does not change any more.
  const PlainOperand& plain(const ReadSide& s, PlainOperand& scratch) {
    if (!cached(s)) {
      prepare_plain(*s.quantizer, p_, s.which, s.how, scratch);
      count(s, scratch.flags);
      return scratch;
    }
    held_ = true;
    if (layer_.weight_ready) return layer_.frozen_weight;
    const std::lock_guard lock(layer_.weight_mutex);
    if (!layer_.weight_ready) {
      prepare_plain(*s.quantizer, p_, s.which, s.how, layer_.frozen_weight);
      count(s, layer_.frozen_weight.flags);
      if (keeps_decoded(s))
        layer_.prepared_weight = unit_.prepare(
            operand_of(s, codes_of(*s.quantizer, layer_.frozen_weight)), rows(s), p_.k);
      layer_.weight_ready = true;
    }
    return layer_.frozen_weight;
  }

  /// Whether what the unit decodes of a weight stays beside its codes. Of a large one it takes four
  /// times their memory, and a product of many rows costs so much more that it decodes for itself.
  bool keeps_decoded(const ReadSide& s) const {
    constexpr std::int64_t kLarge = std::int64_t{1} << 15, kManyRows = 256;
    const std::int64_t others = p_.rows(net::other_side(s.which));
    return p_.d_stack.count() > 1 || others < kManyRows || rows(s) * p_.k < kLarge;
  }

  net::SourceCodes plain_codes(ReadSide& s, PlainOperand& scratch, OperandScales& scales) {
    if (s.quantizer == nullptr) {
      net::require_elements(*s.source.source, p_.layer);
      return {&float32(), s.source.source->data.data()};
    }
    const PlainOperand& operand = plain(s, scratch);
    if (s.quantizer->policy().zero_point && !operand.dequantized) s.zero = operand.codes.zero_point;
    scales = scales_of(*s.quantizer, p_, s.which, s.how.groups, operand);
    net::SourceCodes codes = codes_of(*s.quantizer, operand);
    // Another product of the layer may read the same weight in another order.
    const bool prepared = &operand == &layer_.frozen_weight && s.source.stack.count() == 1 &&
                          layer_.prepared_weight != nullptr &&
                          layer_.prepared_weight->is(operand_of(s, codes), rows(s), p_.k, nullptr);
    if (prepared) codes.prepared = layer_.prepared_weight.get();
    return codes;
  }

  std::int64_t rows(const ReadSide& s) const { return p_.rows(s.which); }
  unit::Operand operand_of(const ReadSide& s, const net::SourceCodes& codes) const {
    return {codes.format, codes.codes, s.source.gather};
  }

  void multiply_plain(const net::ProductResult& result, OperandScales& a, OperandScales& b) {
    thread_local PlainOperand scratch_a, scratch_b;
    const net::SourceCodes left = plain_codes(a_, scratch_a, a);
    const net::SourceCodes right = plain_codes(b_, scratch_b, b);
    if (a_.zero != 0 || b_.zero != 0) return multiply_shifted(result, left, right);
    net::multiply(multiplier_, p_, left, right, unit_random(), result);
  }

  /// Codes with zero points: borders have the code that means 0, and zero_ gets what the zero
  /// points leave in the sums.
  void multiply_shifted(const net::ProductResult& result, net::SourceCodes left,
                        net::SourceCodes right) {
    net::Product shifted = p_;
    thread_local PaddedSide padded_a, padded_b;
    const auto pad = [](const ReadSide& s, net::ProductSide& side, net::SourceCodes& codes,
                        PaddedSide& padded) {
      if (s.zero == 0 || side.gather->padding.identity()) return;
      const auto code = static_cast<std::uint8_t>(s.zero & ((1 << codes.format->bits) - 1));
      pad_with(code, side, static_cast<const std::uint8_t*>(codes.codes), padded);
      side = padded.side;
      codes = {codes.format, padded.codes.data()};
    };
    pad(a_, shifted.a, left, padded_a);
    pad(b_, shifted.b, right, padded_b);
    zero_ = {.a = a_.zero, .b = b_.zero, .depth = p_.k, .a_sums = {}, .b_sums = {}};
    if (a_.zero != 0) zero_.b_sums = code_sums(shifted.b, right, p_.k);
    if (b_.zero != 0) zero_.a_sums = code_sums(shifted.a, left, p_.k);
    net::multiply(multiplier_, shifted, left, right, unit_random(), result);
  }

  void multiply_compressed(const net::ProductResult& result, OperandScales& a, OperandScales& b) {
    if (a_.reduction() || b_.reduction() || (unit_.description()->scaling.block != 0)) {
      throw Error(fmt::format(
          "layer {}, {}: unit {} is sparse: expected blocks of axis channel, or one scale",
          p_.layer, net::to_string(p_.kind), unit_.row().name));
    }
    thread_local PlainOperand scratch_a, scratch_b;
    const net::SourceCodes left = plain_codes(a_, scratch_a, a);
    const net::SourceCodes right = plain_codes(b_, scratch_b, b);
    multiply_sparse(multiplier_, p_, *sparse_side(layer_.recipe, p_.kind), left, right,
                    unit_random(), result);
  }

  void multiply_gathered(const net::ProductResult& result, OperandScales& a, OperandScales& b) {
    thread_local PlainOperand scratch_a, scratch_b;
    const auto make = [&](ReadSide& s, PlainOperand& scratch,
                          OperandScales& scales) -> std::unique_ptr<OperandSide> {
      if (s.gathered()) return gathered(s, false);
      return std::make_unique<PlainSide>(p_, s.which, plain_codes(s, scratch, scales));
    };
    const auto left = make(a_, scratch_a, a), right = make(b_, scratch_b, b);
    multiply_tiles(multiplier_, p_, *left, *right, unit_random(), result);
    count_side(a_, *left);
    count_side(b_, *right);
  }

  bool sliced(const ReadSide& s) const {
    return s.quantizer != nullptr && reads_slices(unit_, s.quantizer->policy());
  }

  void multiply_sliced() {
    if (!sliced(a_) || !sliced(b_)) {
      throw Error(fmt::format(
          "layer {}, {}: unit {} reads codes: expected both operands in blocks, or none", p_.layer,
          net::to_string(p_.kind), unit_.row().name));
    }
    const std::shared_ptr<const BlockSlices> left = slices(a_), right = slices(b_);
    multiply_slices(unit_, p_, *left, *right, unit_random());
    count(a_, left->flags());
    count(b_, right->flags());
  }

  /// The operand in slices; of a weight that does not change any more those of its first product.
  std::shared_ptr<const BlockSlices> slices(const ReadSide& s) {
    const auto make = [&] {
      return std::make_shared<const BlockSlices>(*s.quantizer, p_, s.which, s.how.random);
    };
    // Later products of a step draw for themselves.
    const bool same = s.source.stack.count() == 1 && !s.source.along_rows &&
                      (!s.quantizer->stochastic() || run_.repetition == 0);
    if (!cached(s) || !same) return make();
    held_ = true;
    const std::lock_guard lock(layer_.weight_mutex);
    if (!layer_.sliced_weight) layer_.sliced_weight = make();
    return layer_.sliced_weight;
  }

  std::unique_ptr<OperandSide> gathered(const ReadSide& s, bool scaled) const {
    // The stream of random bits is that of the gathered rows.
    RandomPiece random = s.how.random;
    const std::int64_t samples = samples_of(s.which);
    random.first = run_.phase == net::Phase::inference && s.source.role != net::Role::weight
                       ? run_.first_sample * (s.source.stack.count() * rows(s) / samples) * p_.k
                       : 0;
    return std::make_unique<GatheredSide>(*s.quantizer, p_, s.which, random, s.how.samples, scaled);
  }

  void count_side(const ReadSide& s, const OperandSide& side) {
    if (side.flags().elements > 0) count(s, side.flags());
  }

  void require_scaled(const ReadSide& s) const {
    const unit::Scaling& scaling = unit_.description()->scaling;
    const BlockFormat* const block = s.quantizer == nullptr ? nullptr : s.quantizer->policy().block;
    const bool fits = block != nullptr && block->span == Span::block &&
                      block->affine == Affine::sym && block->size == scaling.block &&
                      block->scale->name == scaling.format->name && block->element->bits <= 8;
    if (fits) return;
    throw Error(fmt::format(
        "layer {}, {}: unit {} takes blocks of {} elements with a {} scale; the {} is {}", p_.layer,
        net::to_string(p_.kind), unit_.row().name, scaling.block, scaling.format->name,
        net::to_string(s.source.role),
        block != nullptr         ? block->name
        : s.quantizer == nullptr ? "float32"
                                 : s.quantizer->policy().format->name));
  }

  void multiply_scaled(const net::ProductResult& result, OperandScales& a, OperandScales& b) {
    require_scaled(a_);
    require_scaled(b_);
    const auto gather_of = [&](const ReadSide& s) -> std::optional<ScaledGather> {
      if (s.reduction()) return std::nullopt;
      return scaled_gather(p_, s.which, s.quantizer->policy().block->size);
    };
    std::optional<ScaledGather> ga = gather_of(a_), gb = gather_of(b_);
    if ((ga ? ga->depth() : p_.k) != (gb ? gb->depth() : p_.k)) {
      ga.reset();
      gb.reset();
    }
    const auto make = [&](const ReadSide& s,
                          std::optional<ScaledGather>& gather) -> std::unique_ptr<OperandSide> {
      if (!gather) return gathered(s, true);
      return std::make_unique<ScaledSide>(*s.quantizer, p_, s.which, std::move(*gather),
                                          s.how.random, s.how.samples);
    };
    const auto left = make(a_, ga), right = make(b_, gb);
    multiply_tiles(multiplier_, p_, *left, *right, unit_random(), result);
    count_side(a_, *left);
    count_side(b_, *right);
    a = left->scales();
    b = right->scales();
  }

  LayerState& layer_;
  const net::Product& p_;
  const ProductRun& run_;
  const unit::Unit& unit_;
  OverflowSample sampled_;
  const unit::Unit& multiplier_;  ///< the unit, which of fprop counts what overflows
  ReadSide a_, b_;
  ZeroPoints zero_;
  bool held_ = false;  ///< the weight was read as it is kept for later passes
};

}  // namespace

void run_product(LayerState& layer, const net::Product& product, const ProductRun& run) {
  const net::Section section(net::SectionKind::quantize, product.layer,
                             net::to_string(product.kind));
  Run here(layer, product, run);
  here.go();
  if (run.heard != nullptr && *run.heard) (*run.heard)(product);
  here.store_output();
}

}  // namespace numemu::policies
