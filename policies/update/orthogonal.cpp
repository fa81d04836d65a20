// Update rule orthogonal: the optimizer's increment only turns a layer's neurons, all by the same
// rotation, W <- Q W, so that their lengths, the angles between them and their hyperspherical
// energy stay (Liu et al., Orthogonal Over-Parameterized Training, CVPR 2021, arXiv 2004.04690).
// Neurons are the rows of a weight [outputs, ...]; biases and norms are updated as usual.
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "policies/numerics/random_identity.hpp"
#include "policies/update/base/orthogonal_step.hpp"
#include "policies/update/parameter_state.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kOrthogonalState = "recipe/update/orthogonal";
constexpr const char* kParametrised = "parametrised";
constexpr const char* kPenalty = "penalty";

struct NamedRotator {
  const char* name;
  Rotator rotator;
};
constexpr NamedRotator kRotators[] = {{"cayley", Rotator::cayley},
                                      {"descent", Rotator::descent},
                                      {"gram-schmidt", Rotator::gram_schmidt},
                                      {"householder", Rotator::householder},
                                      {"loewdin", Rotator::loewdin}};

std::vector<std::string> ways() {
  std::vector<std::string> names;
  for (const NamedRotator& one : kRotators) names.emplace_back(one.name);
  names.insert(names.end(), {kParametrised, kPenalty});
  return names;
}

struct OrthogonalOptions final : PolicyOptions {
  std::string way = kRotators[0].name;
  std::int64_t dimensions = 0, iterations = 2;
  double strength = 0.1;
  std::vector<Option> list() override {
    return {{"way",
             "cayley: the exact step; descent: its fixed-point iteration; gram-schmidt, "
             "householder, "
             "loewdin: of the matrix that the increment gives; parametrised: a trained S, R = (I + "
             "S)(I - S)^-1; penalty: R is free and pulled toward a rotation",
             &way, 0, 0, ways()},
            {"dimensions",
             "how many elements of the neurons an update turns, drawn anew for each (S-OPT); 0: "
             "all",
             &dimensions, 0, 1 << 20},
            {"iterations", "of descent and loewdin", &iterations, 1, 64},
            {"strength", "of the penalty: share of what is not orthogonal that an update removes",
             &strength, 0, 1}};
  }
  bool keeps_first() const { return way == kParametrised || way == kPenalty; }
  /// Float32 numbers that are kept of a weight [n, ...] of n d elements: the first weight, and S.
  std::size_t kept(const net::Tensor& value) const {
    if (!keeps_first() || value.shape.size() < 2) return 0;
    const std::size_t size = value.data.size(),
                      d = size / std::max<std::size_t>(1, static_cast<std::size_t>(value.dim(0)));
    return size + (way == kParametrised ? d * d : 0);
  }
};

Matrix matrix_of(std::int64_t rows, std::int64_t columns, const float* x) {
  Matrix matrix(rows, columns);
  std::copy_n(x, matrix.data.size(), matrix.data.begin());
  return matrix;
}

/// `count` of d places in ascending order.
std::vector<std::int64_t> drawn_places(const RandomSource& source, std::int64_t d,
                                       std::int64_t count) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(d));
  for (std::int64_t i = 0; i < d; ++i) places[static_cast<std::size_t>(i)] = i;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = source.bits(static_cast<std::uint64_t>(i), 32);
    const auto other =
        i + static_cast<std::int64_t>(bits * static_cast<std::uint64_t>(d - i) >> 32);
    std::swap(places[static_cast<std::size_t>(i)], places[static_cast<std::size_t>(other)]);
  }
  places.resize(static_cast<std::size_t>(count));
  std::sort(places.begin(), places.end());
  return places;
}

class Orthogonal final : public Policy {
 public:
  Orthogonal(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const auto& [layer, options] : binding().layers) {
      const auto& chosen = static_cast<const OrthogonalOptions&>(*options);
      if (chosen.keeps_first() && chosen.dimensions > 0) {
        throw Error(
            fmt::format("{}: orthogonal: layer {}: expected dimensions 0 with {}, whose rotation "
                        "is that of all updates, not {}",
                        binding().where, layer, chosen.way, chosen.dimensions));
      }
    }
  }

  void update(const net::Step& step, const net::Update& given) override {
    const auto* const options = binding().of<OrthogonalOptions>(given.parameter);
    const net::Tensor& value = *given.value;
    if (options == nullptr || value.shape.size() < 2 || value.data.empty())
      return Forwarding::update(step, given);
    const std::int64_t n = value.dim(0), d = value.size() / n;
    const Matrix neurons = matrix_of(n, d, value.data.data());
    Matrix down = matrix_of(n, d, given.delta->data());
    for (double& x : down.data) x = -x;
    const Matrix turned = turned_by(*options, step, given.parameter, neurons, down);
    std::vector<float> delta(value.data.size());
    for (std::size_t i = 0; i < delta.size(); ++i)
      delta[i] = net::neutral(static_cast<float>(turned.data[i] - neurons.data[i]));
    net::Update update = given;
    update.delta = &delta;
    Forwarding::update(step, update);
  }

  void save_state(net::NamedState& state) const override {
    Forwarding::save_state(state);
    save_tensors(kOrthogonalState, kept_, state);
  }
  void load_state(const net::NamedState& state) override {
    kept_ = load_parameters<OrthogonalOptions>(
        kOrthogonalState, binding(), state,
        [](const OrthogonalOptions& options, const net::Tensor& value) {
          return options.kept(value);
        });
    Forwarding::load_state(state);
  }

 private:
  Matrix turned_by(const OrthogonalOptions& options, const net::Step& step,
                   std::string_view parameter, const Matrix& neurons, const Matrix& down) {
    if (options.way == kParametrised) return parametrised(options, parameter, neurons, down);
    if (options.way == kPenalty) return pulled(options, parameter, neurons, down);
    RotationRule rule{.iterations = options.iterations};
    for (const NamedRotator& one : kRotators)
      if (one.name == options.way) rule.rotator = one.rotator;
    const std::int64_t d = neurons.columns;
    if (options.dimensions == 0 || options.dimensions >= d) return rotated(rule, neurons, down);
    const std::string_view layer = parameter.substr(0, parameter.rfind('.'));
    RandomSource source =
        stored_random(binding().recipe->seed(), layer, "weight", step, "orthogonal");
    source.stream = Stream::mask;
    const std::vector<std::int64_t> places = drawn_places(source, d, options.dimensions);
    Matrix part(neurons.rows, options.dimensions), part_down = part;
    for (std::int64_t i = 0; i < part.rows; ++i) {
      for (std::int64_t p = 0; p < part.columns; ++p) {
        part.at(i, p) = neurons.at(i, places[static_cast<std::size_t>(p)]);
        part_down.at(i, p) = down.at(i, places[static_cast<std::size_t>(p)]);
      }
    }
    part = rotated(rule, part, part_down);
    Matrix turned = neurons;
    for (std::int64_t i = 0; i < part.rows; ++i)
      for (std::int64_t p = 0; p < part.columns; ++p)
        turned.at(i, places[static_cast<std::size_t>(p)]) = part.at(i, p);
    return turned;
  }

  /// What is kept of the parameter: its first value, then zeros.
  std::vector<float>& kept(const OrthogonalOptions& options, std::string_view parameter,
                           const Matrix& neurons) {
    std::vector<float>& kept = kept_[std::string(parameter)];
    if (kept.empty()) {
      const std::int64_t d = neurons.columns;
      kept.assign(neurons.data.begin(), neurons.data.end());
      if (options.way == kParametrised) kept.resize(kept.size() + static_cast<std::size_t>(d * d));
    }
    return kept;
  }

  /// W = R V of the first weights V; dL/dR = dL/dW V^T.
  Matrix parametrised(const OrthogonalOptions& options, std::string_view parameter,
                      const Matrix& neurons, const Matrix& down) {
    const std::int64_t n = neurons.rows, d = neurons.columns;
    std::vector<float>& kept_here = kept(options, parameter, neurons);
    const Matrix first = matrix_of(n, d, kept_here.data());
    float* const trained = kept_here.data() + n * d;
    Matrix s = matrix_of(d, d, trained);
    add(s, -1, cayley_step(s, multiplied(transposed(down), first)));
    std::copy(s.data.begin(), s.data.end(), trained);
    std::copy_n(trained, d * d, s.data.begin());  // S as it is kept decides
    return multiplied(first, transposed(cayley_of(s)));
  }

  /// W - D - strength W (W^T W - V^T V) / |V|^2: descent on |V^T (R^T R - I) V|^2, what a free R is
  /// short of a rotation where W = R V can show it. |V|^2, the largest eigenvalue of V^T V, is
  /// bounded by its norm.
  Matrix pulled(const OrthogonalOptions& options, std::string_view parameter, const Matrix& neurons,
                const Matrix& down) {
    const Matrix first =
        matrix_of(neurons.rows, neurons.columns, kept(options, parameter, neurons).data());
    const Matrix of_first = multiplied(first, transposed(first));
    Matrix off = multiplied(neurons, transposed(neurons));
    add(off, -1, of_first);
    Matrix turned = neurons;
    add(turned, -1, down);
    add(turned, -options.strength / norm_of(of_first), multiplied(off, neurons));
    return turned;
  }

  StateTensors kept_;  ///< by parameter
};

}  // namespace

extern const PolicyKind update_orthogonal{
    .key = "update.rule",
    .name = "orthogonal",
    .summary = "the increment turns all neurons of a layer by one rotation",
    .source = "Liu et al., CVPR 2021 (OPT, arXiv 2004.04690)",
    .options = make_options<OrthogonalOptions>,
    .bind = make_policy<Orthogonal>};

}  // namespace numemu::policies
