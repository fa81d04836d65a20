// GELU in its exact form (erf) and in the tanh approximation.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

enum class GeluForm : std::uint8_t { erf, tanh };

/// y = x Phi(x) (erf) or x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (tanh; Hendrycks and
/// Gimpel 2016), each within 2 ulp; -0 for -inf.
class Gelu final : public Pointwise {
 public:
  explicit Gelu(GeluForm form = GeluForm::erf) : Pointwise(Sees::input), form_(form) {}
  GeluForm form() const { return form_; }
  std::string_view kind() const override { return "gelu"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;

 private:
  GeluForm form_;
};

}  // namespace numemu::net
