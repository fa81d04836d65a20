#include "emu/net/multiply_adds.hpp"

namespace numemu::net {
namespace {

class Counter : public Numerics {
 public:
  void product(const Step& step, const Product& p) override {
    multiply_adds += net::multiply_adds(p);
    Numerics::product(step, p);
  }
  double multiply_adds = 0;
};

}  // namespace

double multiply_adds(const Product& p) {
  return static_cast<double>(p.d_stack.count() * p.m) * static_cast<double>(p.n * p.k);
}

double multiply_adds(const Graph& graph, const std::vector<Tensor>& batch) {
  Counter counter;
  forward(graph, batch, counter);
  return counter.multiply_adds;
}

}  // namespace numemu::net
