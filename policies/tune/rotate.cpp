// Step rotate: the values of attention rotated in the weights that give them and read them, so that
// outliers are spread over the channels of a head.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/tune/rotate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "emu/net/math.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/stats/squares.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/tuning/tune_step.hpp"

namespace numemu::policies {
namespace {

/// The nodes that read a value.
std::vector<std::size_t> readers(const net::Graph& graph, int value) {
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::vector<int>& inputs = graph.nodes[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), value) != inputs.end()) nodes.push_back(i);
  }
  return nodes;
}

bool linear(const net::Graph& graph, std::size_t node) {
  return graph.nodes[node].op->kind() == "linear";
}

/// x R of every block of a line of `count` numbers `step` apart, R = S H / sqrt(block).
void rotate_line(double* x, std::int64_t count, std::int64_t block,
                 const std::vector<double>& signs) {
  const double scale = 1 / std::sqrt(static_cast<double>(block));
  for (std::int64_t c = 0; c < count; ++c) x[c] *= signs[c] * scale;
  for (std::int64_t first = 0; first < count; first += block) {
    for (std::int64_t half = 1; half < block; half *= 2) {
      for (std::int64_t c = 0; c < block; ++c) {
        if ((c & half) != 0) continue;
        double &a = x[first + c], &b = x[first + c + half];
        const double sum = a + b;
        b = a - b;
        a = sum;
      }
    }
  }
}

/// Lines of `count` numbers, `step` apart, of a tensor: line(i) begins at its element i.
template <class Line>
void rotate_lines(net::Tensor& x, std::int64_t lines, std::int64_t count, std::int64_t step,
                  std::int64_t block, const std::vector<double>& signs, const Line& line) {
  std::vector<double> copy(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < lines; ++i) {
    float* const first = x.data.data() + line(i);
    for (std::int64_t c = 0; c < count; ++c) copy[c] = first[c * step];
    rotate_line(copy.data(), count, block, signs);
    for (std::int64_t c = 0; c < count; ++c) first[c * step] = static_cast<float>(copy[c]);
  }
}

}  // namespace

std::int64_t RotationLink::block(std::int64_t most) const {
  std::int64_t size = 1;
  while (size * 2 <= most && channels / heads % (size * 2) == 0) size *= 2;
  return size;
}

std::vector<RotationLink> rotation_links(const net::Graph& graph) {
  const auto inputs = static_cast<int>(graph.inputs.size());
  std::vector<RotationLink> links;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto* const product = dynamic_cast<const net::MatMul*>(graph.nodes[i].op.get());
    if (product == nullptr || product->options().heads == 0 || product->options().transpose_b)
      continue;
    const int values = graph.nodes[i].inputs.at(1);
    if (values < inputs) continue;
    const auto producer = static_cast<std::size_t>(values - inputs);
    const std::vector<std::size_t> behind = readers(graph, graph.value_of(i));
    if (!linear(graph, producer) || readers(graph, values).size() != 1 || behind.size() != 1 ||
        !linear(graph, behind[0]) || i + 1 == graph.nodes.size())
      continue;
    const net::Tensor& weight = std::as_const(*graph.nodes[producer].op).parameters()[0].value;
    RotationLink link{producer, behind[0], weight.dim(0), product->options().heads};
    const net::Tensor& reader = std::as_const(*graph.nodes[behind[0]].op).parameters()[0].value;
    if (link.block(2) == 2 && reader.dim(-1) == link.channels) links.push_back(link);
  }
  return links;
}

void rotate_link(net::Graph& graph, const RotationLink& link, std::int64_t block,
                 const RandomSource& random) {
  std::vector<double> signs;
  for (std::int64_t c = 0; c < link.channels; ++c)
    signs.push_back(random.bits(static_cast<std::uint64_t>(c), 1) == 0 ? 1.0 : -1.0);
  const std::span<net::Parameter> parameters = graph.nodes[link.producer].op->parameters();
  for (net::Parameter& parameter : parameters) {  // weight [out, in], bias [out]
    const std::int64_t columns = parameter.value.size() / link.channels;
    rotate_lines(parameter.value, columns, link.channels, columns, block, signs,
                 [](std::int64_t i) { return i; });
  }
  net::Tensor& reader = graph.nodes[link.consumer].op->parameters()[0].value;  // [out, in]
  rotate_lines(reader, reader.dim(0), link.channels, 1, block, signs,
               [&](std::int64_t i) { return i * link.channels; });
}

namespace {

double mean_of(std::int64_t n, const auto& term) {
  return n == 0 ? 0 : pairwise_sum(n, term) / static_cast<double>(n);
}

double fourth(float x) {
  const double square = double{x} * double{x};
  return square * square;
}

}  // namespace

double RawMoments::peak() const { return square > 0 ? largest / std::sqrt(square) : 0; }

RawMoments raw_moments(const float* x, std::int64_t n) {
  RawMoments moments;
  moments.square = n == 0 ? 0 : stats::sum_of_squares(n, x) / static_cast<double>(n);
  moments.fourth = mean_of(n, [&](std::int64_t i) { return fourth(x[i]); });
  for (std::int64_t i = 0; i < n; ++i)
    moments.largest = std::max(moments.largest, std::abs(double{x[i]}));
  return moments;
}

RawMoments rotated_moments(const float* x, std::int64_t n, std::int64_t block) {
  const auto b = static_cast<double>(block);
  RawMoments moments;
  moments.square =
      mean_of(n / block,
              [&](std::int64_t i) { return stats::sum_of_squares(block, x + i * block); }) /
      b;
  moments.fourth = mean_of(n / block, [&](std::int64_t i) {
    const float* const line = x + i * block;
    const double s2 = stats::sum_of_squares(block, line);
    const double s4 = pairwise_sum(block, [&](std::int64_t k) { return fourth(line[k]); });
    return (3 * s2 * s2 - 2 * s4) / (b * b);
  });
  for (std::int64_t i = 0; i < n; i += block) {
    const double sum =
        pairwise_sum(block, [&](std::int64_t k) { return std::abs(double{x[i + k]}); });
    moments.largest = std::max(moments.largest, sum / std::sqrt(b));
  }
  return moments;
}

double rotated_share_above(const float* x, std::int64_t n, std::int64_t block, double threshold) {
  const auto b = static_cast<double>(block);
  return mean_of(n / block, [&](std::int64_t i) {
    const double deviation = std::sqrt(stats::sum_of_squares(block, x + i * block) / b);
    if (deviation == 0) return 0.0;
    return 2 * double{net::normal_cdf(static_cast<float>(-threshold / deviation))};
  });
}

namespace {

struct RotateStepOptions final : PolicyOptions {
  std::int64_t block = 65536;
  std::vector<Option> list() override {
    return {{"block",
             "channels that are rotated together at most; the largest power of two that divides a "
             "head's is taken",
             &block, 2, 65536}};
  }
};

/// Moments of what a layer reads, as it is and after a rotation.
struct Moments {
  RawMoments now, rotated;
  double elements = 0;

  void add(const net::Tensor& x, std::int64_t block) {
    const auto n = static_cast<double>(x.size());
    const auto join = [&](RawMoments& all, const RawMoments& next) {
      all.square = (all.square * elements + next.square * n) / (elements + n);
      all.fourth = (all.fourth * elements + next.fourth * n) / (elements + n);
      all.largest = std::max(all.largest, next.largest);
    };
    join(now, raw_moments(x.data.data(), x.size()));
    join(rotated, rotated_moments(x.data.data(), x.size(), block));
    elements += n;
  }
};

class Rotate final : public TuneStep {
 public:
  explicit Rotate(const RotateStepOptions& options) : options_(options) {}

  void run(Tuning& tuning, std::int64_t, const TuneProgress& progress) override {
    const std::vector<RotationLink> links = rotation_links(tuning.graph);
    if (links.empty()) {
      throw Error(fmt::format(
          "{}: step rotate: expected attention whose values go from one linear layer to another "
          "with at least two channels in a head; elsewhere the recipe's key transform rotates",
          tuning.where));
    }
    const std::vector<Moments> before = moments(tuning, links);
    progress(0.5);
    for (const RotationLink& link : links) {
      RandomSource signs;
      signs.seed = tuning.seed;
      signs.tensor = tensor_word(tuning.graph.nodes[link.consumer].name + "/transform/0/rotate");
      for (net::Graph* const graph : {&tuning.graph, &tuning.reference})
        rotate_link(*graph, link, link.block(options_.block), signs);
      for (const std::size_t node : {link.producer, link.consumer}) {
        LayerRanges& ranges = tuning.ranges[tuning.graph.nodes[node].name];
        ranges.weight.clear();
        if (node == link.consumer) ranges.activation.reset();
      }
    }
    std::erase_if(tuning.ranges, [](const auto& entry) { return entry.second.empty(); });
    complete_ranges(tuning);
    describe(tuning, links, before, moments(tuning, links));
  }

  std::string summary() const override { return text_; }

 private:
  /// Of what the consumers read, in float32.
  std::vector<Moments> moments(const Tuning& tuning, const std::vector<RotationLink>& links) const {
    struct Reading final : net::Numerics {
      std::map<std::string, std::pair<std::int64_t, Moments*>, std::less<>> layers;
      void product(const net::Step& step, const net::Product& p) override {
        net::Numerics::product(step, p);
        if (const auto found = layers.find(p.layer); found != layers.end())
          found->second.second->add(*p.a.source, found->second.first);
      }
    } reading;
    std::vector<Moments> all(links.size());
    for (std::size_t i = 0; i < links.size(); ++i)
      reading.layers[tuning.reference.nodes[links[i].consumer].name] = {
          links[i].block(options_.block), &all[i]};
    tuning.calibration.for_each([&](std::int64_t, const std::vector<net::Tensor>& inputs) {
      net::forward(tuning.reference, inputs, reading);
    });
    return all;
  }

  void describe(const Tuning& tuning, const std::vector<RotationLink>& links,
                const std::vector<Moments>& before, const std::vector<Moments>& after) {
    text_ = fmt::format("{} rotated; kurtosis and largest / root mean square of what they read:",
                        links.size());
    for (std::size_t i = 0; i < links.size(); ++i) {
      text_ += fmt::format("{} {} {:.2f} to {:.2f} (predicted {:.2f}), {:.1f} to {:.1f}",
                           i == 0 ? "" : ";", tuning.graph.nodes[links[i].consumer].name,
                           before[i].now.kurtosis(), after[i].now.kurtosis(),
                           before[i].rotated.kurtosis(), before[i].now.peak(), after[i].now.peak());
    }
  }

  const RotateStepOptions& options_;
  std::string text_;
};

}  // namespace

extern const TuneStepKind tune_rotate;
const TuneStepKind tune_rotate{
    .name = "rotate",
    .summary =
        "values of attention rotated by Hadamard matrices in the weights around them; the "
        "network computes the same",
    .source = "Ashkboos et al., NeurIPS 2024 (QuaRot, arXiv 2404.00456)",
    .options = make_options<RotateStepOptions>,
    .make = make_step<Rotate, RotateStepOptions>};

}  // namespace numemu::policies
