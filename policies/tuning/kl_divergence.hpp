// The divergence of one network's class probabilities from another's, and its gradient.
#pragma once
#include "emu/net/tensor.hpp"

namespace numemu::policies {

/// The mean over the rows of KL(softmax(f) || softmax(q)) = sum_c f_c (ln f_c - ln q_c), the last
/// axis being the classes. With `gradient`: that of the mean along q's logits, (softmax(q) -
/// softmax(f)) / rows. Throws Error where shapes differ and for a row without a finite largest
/// logit.
double kl_divergence(const net::Tensor& f, const net::Tensor& q, net::Tensor* gradient = nullptr);

}  // namespace numemu::policies
