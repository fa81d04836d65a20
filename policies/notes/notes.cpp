// Notes for readers of results: collected layer by layer, reported by cause.
#include "policies/notes/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx/file.hpp"
#include "emu/net/ops/fixed_quantizer.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/joined.hpp"
#include "formats/scaling/clipping.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {

std::string_view to_string(NoteKind kind) {
  switch (kind) {
    case NoteKind::stages:
      return "stages";
    case NoteKind::training_keys:
      return "training keys";
    case NoteKind::scale_elements:
      return "scale elements";
    case NoteKind::lost_signs:
      return "lost signs";
    case NoteKind::clipped:
      return "clipped";
    case NoteKind::wider_codes:
      return "wider codes";
    case NoteKind::samples_apart:
      return "samples apart";
    case NoteKind::ranges:
      return "ranges";
    case NoteKind::quantizers:
      return "quantizers";
    case NoteKind::calibration_key:
      return "calibration key";
    case NoteKind::tables:
      return "tables";
    case NoteKind::lost_nan:
      return "lost NaN";
    case NoteKind::saturated:
      return "saturated";
    case NoteKind::shared_weights:
      return "shared weights";
    case NoteKind::stacked_weights:
      return "stacked weights";
    case NoteKind::choices:
      return "choices";
    case NoteKind::baseline:
      return "baseline";
    case NoteKind::calibration_data:
      return "calibration data";
    case NoteKind::few_samples:
      return "few samples";
    case NoteKind::top5:
      return "top5";
    case NoteKind::odd_samples:
      return "odd samples";
    case NoteKind::left_out_samples:
      return "left out samples";
    case NoteKind::first_output:
      return "first output";
    case NoteKind::other:
      break;
  }
  return "other";
}

std::vector<Note> notes_of(NoteKind kind, std::vector<std::string> texts) {
  std::vector<Note> notes;
  for (std::string& text : texts) notes.push_back({kind, std::move(text)});
  return notes;
}

std::vector<std::string> texts_of(const std::vector<Note>& notes) {
  std::vector<std::string> texts;
  for (const Note& note : notes) texts.push_back(note.text);
  return texts;
}

namespace {

constexpr std::size_t kNamedPlaces = 5;  // of a sentence; the others are counted
constexpr double kNotable = 0.01;        // share by which stored bits differ from the name's

/// What was met: a sentence without its places.
struct Cause {
  std::string text;
  NoteKind kind;
  friend auto operator<=>(const Cause&, const Cause&) = default;
};
/// Where each cause was met.
using Causes = std::map<Cause, std::vector<std::string>>;

/// Scales that serve fewer elements than the block size, for any reason.
void note_scales(const RolePolicy& policy, const net::Shape& shape, std::int64_t depth,
                 const std::string& place, Causes& causes) {
  const BlockFormat* const block = policy.block;
  const std::int64_t n = net::element_count(shape);
  if (block == nullptr || n == 0 || policy.granularity == Granularity::tile) return;
  const double bits = stored_bits(policy, shape, depth) / static_cast<double>(n);
  const double nominal = block->bits_per_element();
  if (std::abs(bits - nominal) <= kNotable * nominal) return;
  const std::int64_t length = line_length(policy, shape, depth);
  const auto serves = [&](const char* scale, std::int64_t elements) {
    return fmt::format("{} of {} serves {} element{}", scale, block->name, elements,
                       elements == 1 ? "" : "s");
  };
  // Groups as of W4A16 kernels, cut by the taps of a convolution.
  const bool grouped = policy.axis == BlockAxis::channel && block->name.starts_with("group(") &&
                       place.starts_with("weight");
  const std::int64_t flat = grouped && shape[0] > 0 ? n / shape[0] : 0;
  std::string why;
  switch (block->span) {
    case Span::block:
      why = length % block->size != 0
                ? fmt::format("blocks of {} are cut (axis of {}{})", block->name, length,
                              flat > length
                                  ? "; axis reduction, that of W4A16, runs along all inputs "
                                    "of an output"
                                  : "")
                : serves("the tensor scale", n);
      break;
    case Span::tile:
      why = serves("a scale", block->rows * block->size);
      break;
    case Span::row:
      why = serves("a scale", length);
      break;
    case Span::channel:
      why = serves("a scale", n / length);
      break;
    case Span::tensor:
      why = serves("the scale", n);
      break;
  }
  causes[{fmt::format("{}: {:.3g} bits an element, not {:.3g}", why, bits, nominal),
          NoteKind::scale_elements}]
      .push_back(place);
}

/// Codes without a sign that no zero point moves.
void note_lost_signs(const RolePolicy& policy, const net::Tensor& x, const std::string& place,
                     Causes& causes) {
  if (policy.format->is_signed || (policy.block && policy.block->affine != Affine::sym) ||
      policy.zero_point)
    return;
  const auto negative = std::count_if(x.data.begin(), x.data.end(), [](float v) { return v < 0; });
  if (negative == 0) return;
  const double share = static_cast<double>(negative) / static_cast<double>(x.size());
  causes[{fmt::format("{} has no negative numbers, which become its lowest value",
                      policy.format->name),
          NoteKind::lost_signs}]
      .push_back(fmt::format("{} ({:.1f} % negative)", place, 100 * share));
}

/// Codes of a format that the unit does not take, but whose values its own format has. `left`: the
/// left operand of the product.
void note_wider(const LayerRecipe& layer, const std::optional<RolePolicy>& policy, bool left,
                const std::string& place, Causes& causes) {
  const unit::Unit& unit = layer.unit(net::GemmKind::fprop);
  const bool turned = sparse_side(layer, net::GemmKind::fprop) == net::Side::b;
  const Format* const wide =
      wider_operand(unit, policy, left != turned ? net::Side::a : net::Side::b);
  if (wide == nullptr) return;
  causes[{fmt::format("{} reads codes of {} as {}, which has all their values", unit.row().name,
                      policy->format->name, wide->name),
          NoteKind::wider_codes}]
      .push_back(place);
}

/// One tensor in that role; the bits are those of a sample.
void note_operand(const std::optional<RolePolicy>& policy, const net::Tensor& x, std::int64_t depth,
                  bool samples, const std::string& place, Causes& causes) {
  if (!policy) return;
  net::Shape shape = x.shape;
  if (samples && !shape.empty()) shape[0] = 1;
  note_scales(*policy, shape, depth, place, causes);
  if (policy->block != nullptr) {
    const std::string clips = clipping_note(*policy->block, policy->scale);
    if (!clips.empty()) causes[{clips, NoteKind::clipped}].push_back(place);
  }
  note_lost_signs(*policy, x, place, causes);
}

/// The causes of every layer, collected in any order of layers.
class Notes {
 public:
  explicit Notes(const BoundRecipe& recipe) : recipe_(recipe) {
    for (const BoundProduct& product : recipe.products()) {
      const auto& [gemm, roles] = product;
      Causes& causes = layers_.emplace_back(product).causes;
      if (gemm.weight != nullptr) {
        const std::string place = "weight of " + gemm.name;
        note_operand(roles[RolePart::weight], *gemm.weight, 0, false, place, causes);
        note_wider(roles, roles[RolePart::weight], false, place, causes);
      }
      numbers_[gemm.name] = layers_.size() - 1;
    }
  }

  /// `second`: the right operand, else the left.
  void operand(std::string_view name, const net::Tensor& x, bool second) {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return;
    auto& [product, causes] = layers_[found->second];
    const auto& [layer, r] = product;
    const net::Role role = second && r.apart(layer.right) ? layer.right : net::Role::activation;
    const std::string place = fmt::format("{} of {}", net::to_string(role), layer.name);
    const std::optional<RolePolicy>& policy = r.role(role, net::GemmKind::fprop);
    note_operand(policy, x, product_depth(layer, x.shape), true, place, causes);
    note_wider(r, policy, !second, place, causes);
  }

  void output(std::string_view name, const net::Tensor& x) {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return;
    auto& [product, causes] = layers_[found->second];
    note_operand(product.roles[RolePart::output], x, 0, true, "output of " + product.gemm.name,
                 causes);
  }

  std::vector<Note> sentences() const;

 private:
  struct OfLayer {
    explicit OfLayer(const BoundProduct& of) : product(of) {}
    const BoundProduct& product;
    Causes causes = {};
  };
  const BoundRecipe& recipe_;
  std::vector<OfLayer> layers_;  // in the graph's order
  std::map<std::string, std::size_t, std::less<>> numbers_;
};

std::vector<Note> Notes::sentences() const {
  Causes causes;
  for (const OfLayer& of : layers_) {
    for (const auto& [cause, places] : of.causes)
      causes[cause].insert(causes[cause].end(), places.begin(), places.end());
  }
  for (const std::string& layer : net::layers_across_samples(recipe_.graph())) {
    const std::optional<RolePolicy>& policy = recipe_.layer(layer)[RolePart::activation];
    if (!policy || has_static_scale(recipe_->calibration(), *policy)) continue;
    causes[{"samples are not on the first axis, so a scale may serve several samples of a batch, "
            "and the batch changes bits; expected the model with the batch first",
            NoteKind::samples_apart}]
        .push_back("activation of " + layer);
  }
  std::vector<Note> notes;
  for (const auto& [cause, places] : causes)
    notes.push_back({cause.kind, cause.text + ": " + joined_first(places, ", ", kNamedPlaces)});
  return notes;
}

}  // namespace

std::vector<Note> recipe_notes(const BoundRecipe& recipe, const FloatReference& reference) {
  Notes notes(recipe);
  for (const auto& [layer, x] : reference.inputs) notes.operand(layer, x, false);
  for (const auto& [layer, x] : reference.seconds) notes.operand(layer, x, true);
  for (const auto& [layer, x] : reference.outputs) notes.output(layer, x);
  return notes.sentences();
}

std::vector<Note> recipe_notes(const BoundRecipe& recipe, const std::vector<net::Tensor>& batch) {
  Notes notes(recipe);
  listen(recipe.graph(), batch,
         {.operands =
              [&](std::string_view layer, const net::Tensor& left, const net::Tensor* right) {
                notes.operand(layer, left, false);
                if (right != nullptr) notes.operand(layer, *right, true);
              },
          .output = [&](std::string_view layer,
                        const net::Tensor& output) { notes.output(layer, output); }});
  return notes.sentences();
}

namespace {

constexpr std::size_t kMostNamed = 4;

/// Of numbers to integers, or casts.
std::int64_t fixed_quantizers(const net::Graph& graph, bool casts) {
  return std::ranges::count_if(graph.nodes, [&](const net::Node& node) {
    const auto* const quantizer = dynamic_cast<const net::FixedQuantizer*>(node.op.get());
    return quantizer != nullptr && quantizer->kind() != "dequantize" &&
           quantizer->is_cast() == casts;
  });
}

std::int64_t weights_as_codes(const std::string& path) {
  std::error_code ignored;
  if (net::names_onnx_file(path) && std::filesystem::exists(path, ignored))
    return net::weights_as_codes(path);
  return net::coded_weights_of(path);
}

}  // namespace

std::vector<Note> notes_on_training(const Recipe& recipe, std::size_t stage) {
  std::vector<Note> notes;
  if (stage > 0)
    notes.push_back({NoteKind::stages,
                     fmt::format("The recipe has stages; this is the last one, stage {}.", stage)});
  const std::vector<std::string> keys = recipe.training_keys();
  if (!keys.empty())
    notes.push_back({NoteKind::training_keys,
                     fmt::format("Without effect in inference: {}.", joined(keys, ", "))});
  return notes;
}

namespace {

/// Whether a value is a learned constant of the graph, or a view of one.
bool is_learned_constant(const net::Graph& graph, int value) {
  for (;;) {
    const int at = value - static_cast<int>(graph.inputs.size());
    if (at < 0) return false;
    const net::Node& node = graph.nodes[static_cast<std::size_t>(at)];
    if (const auto* constant = dynamic_cast<const net::Constant*>(node.op.get()))
      return constant->origin().role == net::ConstantOrigin::Role::weight;
    if (node.op->result() != net::ResultKind::view || node.inputs.empty()) return false;
    value = node.inputs[0];
  }
}

std::vector<Note> notes_on_stacked_weights(const BoundRecipe& recipe) {
  std::vector<std::string> names;
  for (const auto& [gemm, roles] : recipe.products()) {
    if (gemm.weight != nullptr || !roles[RolePart::activation]) continue;
    if (std::ranges::any_of(gemm.node->inputs,
                            [&](int value) { return is_learned_constant(recipe.graph(), value); }))
      names.push_back(gemm.name);
  }
  if (names.empty()) return {};
  return {{NoteKind::stacked_weights,
           fmt::format("Weights that a product of stacks reads are quantized as activations: {}.",
                       joined_first(names, ", ", kMostNamed))}};
}

}  // namespace

std::vector<Note> notes_on_tables(const BoundRecipe& recipe) {
  const net::Graph& graph = recipe.graph();
  bool quantizes = false;
  std::set<const net::Tensor*> weights;
  for (const auto& [gemm, roles] : recipe.products()) {
    if (gemm.weight == nullptr) continue;
    weights.insert(gemm.weight);
    quantizes = quantizes || roles[RolePart::weight].has_value();
  }
  std::vector<Note> notes = notes_on_stacked_weights(recipe);
  if (!quantizes) return notes;
  std::vector<std::string> names;
  std::int64_t elements = 0;
  for (const net::Node& node : graph.nodes) {
    const bool quantized =
        net::table_of(node) != nullptr && (recipe.layer(node.name)[RolePart::embedding] ||
                                           recipe.chosen("table", node.name) != nullptr);
    for (const net::Parameter& parameter : std::as_const(*node.op).parameters()) {
      if (quantized || (!parameter.trained && !parameter.is_tied()) ||
          parameter.value.shape.size() < 2 || weights.contains(&parameter.value))
        continue;
      elements += parameter.value.size();
      names.push_back(parameter.name);
    }
  }
  if (names.empty()) return notes;
  const double share =
      100 * static_cast<double>(elements) / static_cast<double>(graph.parameter_count());
  notes.push_back(
      {NoteKind::tables,
       fmt::format("Role weight is that of products; tables stay float32: {}, {:.3g} % of "
                   "the parameters.",
                   joined_first(names, ", ", kMostNamed), share)});
  return notes;
}

std::string own_quantizers(const net::Graph& graph, const std::string& path) {
  const std::int64_t of_values = fixed_quantizers(graph, false),
                     of_weights = weights_as_codes(path);
  std::vector<std::string> parts;
  if (of_values > 0)
    parts.push_back(fmt::format("{} quantizer{} of its own", of_values, of_values > 1 ? "s" : ""));
  if (of_weights > 0)
    parts.push_back(
        fmt::format("{} weight{} stored as codes", of_weights, of_weights > 1 ? "s" : ""));
  return joined(parts, ", ");
}

std::vector<std::string> notes_on_quantizers(const net::Graph& graph, const std::string& path) {
  const std::int64_t casts = fixed_quantizers(graph, true);
  std::string parts = own_quantizers(graph, path);
  if (casts > 0)
    parts += fmt::format("{}{} cast{} to floats of 8 or 16 bits", parts.empty() ? "" : ", ", casts,
                         casts > 1 ? "s" : "");
  if (parts.empty()) return {};
  const bool exported = net::coded_weights_of(path) > 0;
  return {fmt::format(
      "The network has {}, which the reference (float32) contains too: changes and SQNR are "
      "relative to {}, and bits do not count them.",
      parts,
      exported ? "the exported network, not to the one before" : "the network as it stands")};
}

std::vector<std::string> notes_on_outputs(const net::Graph& graph, const std::string& more) {
  if (graph.outputs.size() < 2) return {};
  return {
      fmt::format("The output's SQNR and its prediction are those of {}, the first of {} "
                  "outputs; {}.",
                  graph.outputs.front().name, graph.outputs.size(), more)};
}

bool quantizes_edges(const BoundRecipe& recipe) {
  return std::ranges::any_of(recipe.names(), [&](const std::string& name) {
    return recipe.chooses_for_inference("edges", name);
  });
}

std::vector<Note> notes_on_calibration(const BoundRecipe& recipe, bool named) {
  CalibrationPolicy any = recipe->calibration();
  if (!named && recipe->json()["calibrate"] == Recipe().json()["calibrate"]) return {};
  // `dynamic` is a choice where another rule would be one.
  if (any.rule == CalibrationPolicy::Rule::dynamic) any.rule = CalibrationPolicy::Rule::absmax;
  if (!calibrated_operands(recipe, any).empty() || quantizes_edges(recipe)) return {};
  return {{NoteKind::calibration_key,
           "Without effect: calibrate, as no scale of an activation is calibrated."}};
}

namespace {

/// Of the layers of one unit.
struct SaturatedLayers {
  std::string words;
  bool ends = false;                ///< results at an end of the register are counted
  std::vector<std::string> layers;  ///< names and shares
};

std::string saturated_note(const std::string& unit, const SaturatedLayers& of) {
  constexpr std::size_t kLongest = 300;  // as no message is longer (docs/sweeps.md)
  std::string text =
      fmt::format("Results of {} that {} (of those computed again){}: ", unit, of.words,
                  of.ends ? fmt::format(" and that {} (of all)", kAtEndWords) : "");
  const auto rest = [&](std::size_t named) {
    const std::size_t more = of.layers.size() - named;
    return more == 0 ? std::string(".")
                     : fmt::format("{}{} {}layer{}.", named > 0 ? "; " : "", more,
                                   named > 0 ? "more " : "", more > 1 ? "s" : "");
  };
  std::size_t named = 0;
  for (; named < std::min(of.layers.size(), kMostNamed); ++named) {
    const std::string next = (named > 0 ? "; " : "") + of.layers[named];
    if (text.size() + next.size() + rest(named + 1).size() > kLongest) break;
    text += next;
  }
  return text + rest(named);
}

}  // namespace

std::vector<Note> notes_on_counts(const RecipeNumerics& numerics) {
  constexpr net::GemmKind kForward = net::GemmKind::fprop;
  std::vector<Note> notes;
  for (const auto& [gemm, roles] : numerics.bound().products()) {
    const std::string& layer = gemm.name;
    for (const net::Role role : {net::Role::weight, net::Role::activation}) {
      const std::optional<RolePolicy>& policy = roles.role(role, kForward);
      // An unsigned format counts negative numbers as invalid, too.
      if (!policy || policy->format->has_nan() || !policy->format->is_signed) continue;
      const OperandCounts counts = numerics.roles().operand_counts(layer, kForward, role);
      if (counts.invalid == 0) continue;
      notes.push_back(
          {NoteKind::lost_nan,
           fmt::format("Layer {}: {} of {} elements of its {}s were NaN; {} has none and made "
                       "numbers of them.",
                       layer, counts.invalid, counts.elements, net::to_string(role),
                       policy->format->name)});
    }
  }
  std::map<std::string, SaturatedLayers> saturated;  // by unit
  for (const auto& [gemm, roles] : numerics.bound().products()) {
    const SaturationCounts counts = numerics.roles().saturation(gemm.name);
    if (!counts.any()) continue;
    SaturatedLayers& unit = saturated[roles.fprop->row().name];
    unit.words = overflow_words(*roles.fprop->description());
    unit.ends = unit.ends || counts.results > 0;
    std::string layer = gemm.name + " " + counted_share(counts.overflowed, counts.sampled);
    if (counts.results > 0) layer += " and " + counted_share(counts.at_end, counts.results);
    unit.layers.push_back(std::move(layer));
  }
  for (const auto& [unit, of] : saturated)
    notes.push_back({NoteKind::saturated, saturated_note(unit, of)});
  return notes;
}

}  // namespace numemu::policies
