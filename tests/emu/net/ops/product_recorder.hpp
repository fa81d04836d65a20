// The products that an operator asks for.
#pragma once
#include <string>
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu::net::test {

/// float32; `seen` has "LAYER KIND MxNxK" of every product.
struct ProductRecorder : Numerics {
  std::vector<std::string> seen;
  void product(const Step& step, const Product& p) override {
    seen.push_back(std::string(p.layer) + " " + std::string(to_string(p.kind)) + " " +
                   std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k));
    Numerics::product(step, p);
  }
};

}  // namespace numemu::net::test
