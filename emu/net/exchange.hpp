// What simulated workers send in a step and how it becomes one gradient: the order of sums, the
// unit that adds, the form in which values travel, the bits on the wire.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// The gradient of one simulated worker in a step, one tensor per parameter of the graph (empty for
/// untrained ones): the mean over its micro-batches.
struct WorkerGradient {
  std::int64_t worker = 0;
  std::vector<Tensor> parameters;
};

/// Bits of one parameter in a step, the mean over the workers.
struct WireBits {
  double sent = 0;      ///< that a worker sends
  double returned = 0;  ///< that a worker gets back

  static void fields(auto& self, const auto& visit) {
    visit("sent", self.sent);
    visit("returned", self.returned);
  }
};

struct Exchanged {
  std::vector<Tensor> gradients;  ///< one per parameter
  std::vector<WireBits> wire;     ///< one per parameter
};

/// The topology of an exchange: which values are added first, and which partial sums travel.
struct ExchangeOrder {
  enum class Kind : std::uint8_t {
    index,         ///< a chain in the order of workers; what comes back is float32
    tree,          ///< neighbours, then pairs of neighbours, ...; partial sums travel
    ring,          ///< part c of W begins with worker c + 1 and ends with c; partial sums travel
    hierarchical,  ///< `node` neighbours in float32, then the nodes' means in their order
    server,        ///< as index; what comes back travels, too
  } kind = Kind::index;
  std::int64_t node = 1;  ///< workers of a node

  bool operator==(const ExchangeOrder&) const = default;
};

/// "ring", "hierarchical(4)".
std::string to_string(const ExchangeOrder&);
/// Throws Error saying what was expected.
ExchangeOrder read_exchange_order(const std::string& text);
inline constexpr std::int64_t kMostWorkers = 65536;

/// Who takes part in the exchange of a step. Fewer of them may send, in a short batch.
struct Senders {
  std::int64_t workers = 1;
  /// Where a policy above decides it; else the order of the numerics.
  std::optional<ExchangeOrder> order = std::nullopt;
};

/// The exchange of one step. Nothing but finish() changes the state of numerics, and a step whose
/// gradients are not accepted never calls it.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// The next sender's gradient; they come in order. Throws Error naming a worker whose gradients
  /// have other shapes than those of the first.
  virtual void add(WorkerGradient) = 0;
  /// Called once, behind the last one. Throws Error if no worker sent a gradient.
  virtual Exchanged finish() = 0;
};

/// How values travel and are added; the default is float32.
struct ExchangeLinks {
  ExchangeOrder order = {};
  /// Rewrites the tensor of a parameter as its receivers read it, and returns the bits of it;
  /// `sender` is "worker3", "node3", "sum3" of a partial sum, or "mean". Empty: 32 bits for each
  /// element.
  std::function<double(std::size_t parameter, std::string_view sender, Tensor&)> carry = {};
  /// sum[i] of addends[w][i] over w, for n elements; `name` tells the sums of a parameter apart.
  /// Empty: float32, in the order of w.
  std::function<void(std::size_t parameter, std::string_view name,
                     std::span<const float* const> addends, std::int64_t n, float* sum)>
      add = {};
};

/// The mean over the senders, as the order says. Chains and trees of float32 add gradients as they
/// come and keep 1 or log2(count) of them; a ring, and `add` under other orders than tree, keep
/// all. Throws Error where the order does not fit the number of workers.
std::unique_ptr<Exchange> make_exchange(std::int64_t workers, ExchangeLinks links = {});

}  // namespace numemu::net
