// What a reader of results under a recipe has to know: collected layer by layer, told by cause.
#include "policies/recipe/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "emu/net/gemm_layers.hpp"

namespace numemu::policies {
namespace {

constexpr std::size_t kNamedPlaces = 5;  // of a sentence; the others are counted

/// Where each cause was met: a sentence without its places.
using Causes = std::map<std::string, std::vector<std::string>>;

/// "weight of conv1, weight of conv2 and 3 more"
std::string joined(const std::vector<std::string>& places) {
  std::vector<std::string> named(
      places.begin(),
      places.begin() + static_cast<std::ptrdiff_t>(std::min(places.size(), kNamedPlaces)));
  const std::size_t others = places.size() - named.size();
  return fmt::format("{}{}", fmt::join(named, ", "),
                     others > 0 ? fmt::format(" and {} more", others) : "");
}

/// Blocks end with the axis they run along: with the channels of one tap in a convolution.
void note_short_blocks(const RolePolicy& policy, const net::Shape& shape, const std::string& place,
                       Causes& causes) {
  const BlockFormat* const block = policy.block;
  if (block == nullptr || block->span != Span::block || policy.axis != BlockAxis::channel) return;
  const std::int64_t length = shape.empty() ? 1 : shape.back();
  if (length >= block->size || length == 0) return;
  const double bits =
      block->element->bits + static_cast<double>(block->scale_bits()) / static_cast<double>(length);
  causes[fmt::format("blocks of {} where {} has {}, because the axis ends there: {:.4g} bits an "
                     "element, not {:.4g}",
                     length, block->name, block->size, bits, block->bits_per_element())]
      .push_back(place);
}

/// Codes without a sign that no zero point moves.
void note_lost_signs(const RolePolicy& policy, const net::Tensor& x, const std::string& place,
                     Causes& causes) {
  if (policy.format->is_signed || (policy.block && policy.block->affine != Affine::sym)) return;
  const auto negative = std::count_if(x.data.begin(), x.data.end(), [](float v) { return v < 0; });
  if (negative == 0) return;
  const double share = static_cast<double>(negative) / static_cast<double>(x.size());
  causes[fmt::format("{} has no negative numbers, which become its lowest value",
                     policy.format->name)]
      .push_back(fmt::format("{} ({:.1f} % negative)", place, 100 * share));
}

void note_operand(const std::optional<RolePolicy>& policy, const net::Tensor& x,
                  const std::string& place, Causes& causes) {
  if (!policy) return;
  note_short_blocks(*policy, x.shape, place, causes);
  note_lost_signs(*policy, x, place, causes);
}

}  // namespace

std::vector<std::string> recipe_notes(const Recipe& recipe, const net::Graph& graph,
                                      const FloatReference& reference) {
  Causes causes;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const LayerRecipe r = recipe.layer(layer.name);
    if (layer.weight != nullptr)
      note_operand(r.weight, *layer.weight, "weight of " + layer.name, causes);
    for (const LayerTensors* operands : {&reference.inputs, &reference.seconds}) {
      const auto found = operands->find(layer.name);
      if (found != operands->end())
        note_operand(r.activation, found->second, "activation of " + layer.name, causes);
    }
    const auto result = reference.outputs.find(layer.name);
    if (result != reference.outputs.end())
      note_operand(r.output, result->second, "output of " + layer.name, causes);
  }
  std::vector<std::string> notes;
  for (const auto& [cause, places] : causes) notes.push_back(cause + ": " + joined(places));
  return notes;
}

}  // namespace numemu::policies
