// The networks of nets.def that branch: residual, separable, attention, feature interaction.
#pragma once
#include "emu/net/build/builder.hpp"

namespace numemu::net {

/// ResNet for CIFAR-10 of 6 `blocks` + 2 layers (He et al. 2016, 4.2): three stages of 16, 32 and
/// 64 channels. Shortcuts to more channels take every second pixel and pad with zero channels on
/// both sides alike (option A): they have no weights.
void resnet(Builder&, std::int64_t blocks);

/// MobileNet (Howard et al. 2017) cut to small images: a convolution, six depthwise separable
/// blocks of 32 to 128 channels, a classifier on their means.
void mobilenet(Builder&);

/// GPT (Radford et al. 2019): characters and positions embedded in `width`, `blocks` of causal
/// attention and a GELU MLP of 4 x width, each behind a layer normalisation and beside a residual
/// path, then a normalisation and one logit per character. Keys have no bias: softmax cancels it.
void transformer(Builder&, std::int64_t blocks, std::int64_t heads, std::int64_t width);

/// DLRM (Naumov et al. 2019) for clicks: an MLP takes the dense features to `width`, every
/// category has a row of `width`, their dot products in pairs and the dense vector go to an MLP.
void dlrm(Builder&, std::int64_t width);

}  // namespace numemu::net
