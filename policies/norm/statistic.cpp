// Policy norm: which statistic batch normalisation divides by, over which samples. Range BN (Banner
// et al., Scalable Methods for 8-bit Training, NeurIPS 2018), shift-based BN (Hubara et al.,
// Binarized Neural Networks, NeurIPS 2016) and Ghost BN (Hoffer et al., Train longer, generalize
// better, NeurIPS 2017).
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/memory_plan.hpp"
#include "formats/error.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

using Rule = net::NormRule;

// In the order of the enumerations of net::NormRule.
const std::vector<std::string> kStatistics = {"variance", "range", "shift"};
const std::vector<std::string> kConstants = {"exact", "published", "repository"};

template <class Enum>
Enum enum_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

struct Options final : PolicyOptions {
  static constexpr std::int64_t kMost = std::int64_t{1} << 30;
  std::string statistic = kStatistics[0], constant = kConstants[0];
  std::int64_t ghost = 0, chunks = 1;
  std::vector<Option> list() override {
    return {{"statistic", "what takes the place of the variance", &statistic, 0, 0, kStatistics},
            {"ghost", "samples per statistic; 0 is the whole batch", &ghost, 0, kMost},
            {"chunks", "range: parts of the values whose ranges are averaged", &chunks, 1, kMost},
            {"constant", "range: the factor that makes it a standard deviation", &constant, 0, 0,
             kConstants}};
  }
  Rule rule() const {
    return {.statistic = enum_of<Rule::Statistic>(kStatistics, statistic),
            .constant = enum_of<Rule::Constant>(kConstants, constant),
            .chunks = static_cast<std::int32_t>(chunks),
            .ghost_batch = ghost};
  }
};

/// Throws Error naming two options that contradict each other. `pixels`: values per channel of a
/// sample.
void require_consistent(const Options& options, std::int64_t pixels, const std::string& where) {
  const bool range = options.statistic == "range";
  if (!range && options.chunks != 1)
    throw Error(fmt::format("{}: chunks {} contradict statistic {}: expected statistic range",
                            where, options.chunks, options.statistic));
  if (!range && options.constant != kConstants[0])
    throw Error(fmt::format("{}: constant {} contradicts statistic {}: expected statistic range",
                            where, options.constant, options.statistic));
  if (options.ghost == 0) return;
  const std::int64_t values = options.ghost * pixels;
  if (values % options.chunks != 0 || values / options.chunks < 2)
    throw Error(fmt::format(
        "{}: ghost {} contradicts chunks {}: {} values per channel, expected a multiple "
        "of chunks and at least 2 in each",
        where, options.ghost, options.chunks, values));
}

class Norm final : public Policy {
 public:
  Norm(Binding binding, net::Numerics& inner) : Policy(std::move(binding), inner) {
    const net::Graph& graph = this->binding().recipe.graph();
    std::vector<net::Shape> inputs;
    for (const net::GraphInput& input : graph.inputs) {
      inputs.push_back(input.shape);
      inputs.back().insert(inputs.back().begin(), 1);
    }
    const std::vector<net::Shape> shapes = net::value_shapes(graph, inputs);
    bool found = false;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const net::Node& node = graph.nodes[i];
      const Options* const options = this->binding().of<Options>(node.name);
      if (options == nullptr || node.op->kind() != "batch_norm") continue;
      found = true;
      if (this->binding().recipe->exchange().synchronised &&
          (options->statistic != kStatistics[0] || options->ghost != 0)) {
        throw Error(
            fmt::format("{}: layer {}: contradicts exchange.norm synchronised: expected "
                        "the variance over the whole batch",
                        this->binding().where, node.name));
      }
      const net::Shape& shape = shapes[static_cast<std::size_t>(graph.value_of(i))];
      require_consistent(*options, net::element_count(shape) / shape.back(),
                         fmt::format("{}: layer {}", this->binding().where, node.name));
    }
    if (!found)
      throw Error(fmt::format("{}: expected a layer of batch normalisation, {} has none here",
                              this->binding().where, graph.name));
  }

  Rule norm(const net::Step& step, std::string_view layer) override {
    const Options* const options = binding().of<Options>(layer);
    Rule below = Forwarding::norm(step, layer);
    if (options == nullptr) return below;
    Rule rule = options->rule();
    rule.synchronised = below.synchronised;
    return rule;
  }
};

}  // namespace

extern const PolicyKind norm_statistic{
    .key = "norm",
    .name = "",
    .summary =
        "statistic of batch normalisation: variance, range or shifts, of ghost batches, in chunks",
    .source =
        "Banner et al., NeurIPS 2018 (arXiv 1805.11046); Hubara et al., NeurIPS 2016 (arXiv "
        "1602.02830); Hoffer et al., NeurIPS 2017 (arXiv 1705.08741)",
    .options = make_options<Options>,
    .bind = make_policy<Norm>,
    // Shifts alone also round what inference multiplies by.
    .in_inference = [](const PolicyOptions& options) {
      return static_cast<const Options&>(options).rule().statistic == Rule::Statistic::shift;
    }};

}  // namespace numemu::policies
