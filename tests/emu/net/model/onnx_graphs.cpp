// The nodes that exporters write, and the float64 references.
#include "tests/emu/net/model/onnx_graphs.hpp"

#include <cmath>

#include "emu/net/forward.hpp"

namespace numemu::net::test {

Tensor run_model(const ImportedModel& model, const std::vector<Tensor>& inputs) {
  Numerics numerics;
  return forward(model.graph, inputs, numerics);
}

Tensor output_of(const ImportedModel& model, std::size_t index, const std::vector<Tensor>& inputs) {
  const int value = model.outputs.at(index).value;
  if (value < static_cast<int>(inputs.size())) return inputs[value];
  Numerics numerics;
  Tensor found;
  const std::string name(model.graph.value_name(value));
  const Observer observer = [&](const Node& node, const Tensor& tensor) {
    if (node.name == name) found = tensor;
  };
  forward(model.graph, inputs, numerics, {}, &observer);
  return found;
}

Tensor tensor_of(Shape shape, std::vector<float> data) {
  Tensor out(std::move(shape));
  REQUIRE(out.data.size() == data.size());
  out.data = std::move(data);
  return out;
}

std::string Weights::operator()(const std::string& name, const Ints& dims, float scale,
                                float offset) {
  Tensor values = random_tensor(dims, ++made_);
  for (float& v : values.data) v = offset + scale * v;
  writer_.floats(name, dims, values.data);
  all_[name] = Doubles(values.data.begin(), values.data.end());
  return name;
}

GptBlock::GptBlock(const GptStyle& style) : style_(style) {
  w_.input("input_ids", {style.batch, kTokens}, 7);
  weights_("wte.weight", {kWords, kWidth}, 1);
  weights_("wpe.weight", {2 * kTokens, kWidth}, 0.5f);
  const std::string tokens = w_.op("Gather", {"wte.weight", "input_ids"}, {}, "/wte/Gather");
  std::string x = w_.op("Add", {tokens, positions()});
  std::string n = norm(x, "h.0.ln_1");
  x = w_.op("Add", {attention(n), x});
  n = norm(x, "h.0.ln_2");
  x = w_.op("Add",
            {x, dense(gelu(dense(n, "c_fc", kWidth, kHidden)), "mlp.c_proj", kHidden, kWidth)});
  // The head shares the table of the tokens.
  const std::string head = w_.op("Transpose", {"wte.weight"}, {attribute("perm", Ints{1, 0})});
  w_.node("MatMul", {norm(x, "ln_f"), head}, {"logits"}, {}, "/lm_head/MatMul").output("logits");
}

Doubles GptBlock::reference(const std::vector<float>& tokens) const {
  Doubles x(kTokens * kWidth);
  for (int t = 0; t < kTokens; ++t) {
    for (int c = 0; c < kWidth; ++c)
      x[t * kWidth + c] = at("wte.weight")[static_cast<int>(tokens[t]) * kWidth + c] +
                          at("wpe.weight")[t * kWidth + c];
  }
  add(x, attended(normed(x, "h.0.ln_1")));
  Doubles h = linear(normed(x, "h.0.ln_2"), "c_fc", kWidth, kHidden);
  for (double& v : h) {
    v = style_.tanh_gelu ? v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)))
                         : v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
  }
  add(x, linear(h, "mlp.c_proj", kHidden, kWidth));
  x = normed(x, "ln_f");
  Doubles y(kTokens * kWords, 0);
  for (int t = 0; t < kTokens; ++t) {
    for (int o = 0; o < kWords; ++o) {
      for (int c = 0; c < kWidth; ++c)
        y[t * kWords + o] += x[t * kWidth + c] * at("wte.weight")[o * kWidth + c];
    }
  }
  return y;
}

std::string GptBlock::positions() {
  const std::string length = w_.op("Gather", {w_.op("Shape", {"input_ids"}), w_.whole(1)},
                                   {attribute("axis", std::int64_t{0})});
  const std::string range = w_.op(
      "Range",
      {w_.whole(0), w_.op("Cast", {length}, {attribute("to", std::int64_t{7})}), w_.whole(1)});
  return w_.op("Gather", {"wpe.weight", w_.op("Unsqueeze", {range, w_.wholes({0})})});
}

std::string GptBlock::norm(const std::string& x, const std::string& name) {
  weights_(name + ".weight", {kWidth}, 0.25f, 1);
  weights_(name + ".bias", {kWidth}, 0.25f);
  const auto mean = [&](const std::string& of) {
    return w_.op("ReduceMean", {of}, {attribute("axes", Ints{-1})});
  };
  const std::string centred = w_.op("Sub", {x, mean(x)});
  const std::string variance = mean(w_.op("Pow", {centred, w_.number(2)}));
  const std::string deviation = w_.op("Sqrt", {w_.op("Add", {variance, w_.number(1e-5f)})});
  const std::string y = w_.op("Mul", {w_.op("Div", {centred, deviation}), name + ".weight"});
  return w_.op("Add", {y, name + ".bias"});
}

std::string GptBlock::dense(const std::string& x, const std::string& name, int in, int out) {
  const float scale = 1 / std::sqrt(static_cast<float>(in));
  weights_(name + ".w", {in, out}, scale);
  weights_(name + ".bias", {out}, 0.25f);
  if (!style_.gemm) {
    const std::string y = w_.op("MatMul", {x, name + ".w"}, {}, "/" + name + "/MatMul");
    return w_.op("Add", {name + ".bias", y});
  }
  // x.view(-1, in) and y.view(x.size()[:-1] + (out,)).
  const std::string rows = w_.op("Reshape", {x, w_.wholes({-1, in})});
  const std::string y =
      w_.op("Gemm", {rows, name + ".w", name + ".bias"}, {}, "/" + name + "/Gemm");
  const std::string shape = w_.op("Shape", {x});
  std::vector<std::string> sizes;
  for (std::int64_t axis = 0; axis < 2; ++axis) {
    const std::string size =
        w_.op("Gather", {shape, w_.whole(axis)}, {attribute("axis", std::int64_t{0})});
    sizes.push_back(w_.op("Unsqueeze", {size, w_.wholes({0})}));
  }
  sizes.push_back(w_.wholes({out}));
  return w_.op("Reshape", {y, w_.op("Concat", sizes, {attribute("axis", std::int64_t{0})})});
}

std::string GptBlock::heads(const std::string& x, const Ints& order) {
  const Ints target{style_.batch > 0 ? style_.batch : 0, kTokens, kHeads, kWidth / kHeads};
  return w_.op("Transpose", {w_.op("Reshape", {x, w_.wholes(target)})}, {attribute("perm", order)});
}

std::string GptBlock::attention(const std::string& x) {
  std::vector<std::string> parts{"q", "k", "v"};
  if (style_.split) {
    const std::string all = dense(x, "c_attn", kWidth, 3 * kWidth);
    w_.node("Split", {all, w_.wholes({kWidth, kWidth, kWidth})}, parts,
            {attribute("axis", std::int64_t{2})});
  } else {
    for (std::string& part : parts) part = dense(x, part + "_proj", kWidth, kWidth);
  }
  const std::string scores =
      w_.op("MatMul", {heads(parts[0], {0, 2, 1, 3}), heads(parts[1], {0, 2, 3, 1})});
  const std::string scaled =
      w_.op("Div", {scores, w_.op("Sqrt", {w_.number(static_cast<float>(kWidth) / kHeads)})});
  const std::string weights =
      w_.op("Softmax", {masked(scaled)}, {attribute("axis", std::int64_t{-1})});
  const std::string mixed =
      w_.op("Transpose", {w_.op("MatMul", {weights, heads(parts[2], {0, 2, 1, 3})})},
            {attribute("perm", Ints{0, 2, 1, 3})});
  const Ints target{style_.batch > 0 ? style_.batch : 0, kTokens, kWidth};
  return dense(w_.op("Reshape", {mixed, w_.wholes(target)}), "attn.c_proj", kWidth, kWidth);
}

std::string GptBlock::masked(const std::string& scores) {
  if (style_.masks_add) {
    const std::string full = w_.op("ConstantOfShape", {w_.wholes({kTokens, kTokens})},
                                   {tensor_attribute("value", {1}, 1, words(-HUGE_VALF))});
    const std::string mask =
        w_.op("Trilu", {full, w_.whole(1)}, {attribute("upper", std::int64_t{1})});
    return w_.op("Add", {scores, mask});
  }
  std::vector<int> lower;
  for (int i = 0; i < 4 * kTokens * kTokens; ++i)
    lower.push_back(i % (2 * kTokens) <= i / (2 * kTokens));
  w_.bools("h.0.attn.bias", {1, 1, 2 * kTokens, 2 * kTokens}, lower);
  std::string mask = "h.0.attn.bias";
  for (const std::int64_t axis : {2, 3})
    mask = w_.op("Slice",
                 {mask, w_.wholes({0}), w_.wholes({kTokens}), w_.wholes({axis}), w_.wholes({1})});
  mask = w_.op("Cast", {mask}, {attribute("to", std::int64_t{9})});
  return w_.op("Where", {mask, scores, w_.number(-3.4028234663852886e38f)});
}

std::string GptBlock::gelu(const std::string& x) {
  if (!style_.tanh_gelu) {
    const std::string erf = w_.op("Erf", {w_.op("Div", {x, w_.number(std::sqrt(2.0f))})});
    return w_.op("Mul", {w_.op("Mul", {x, w_.op("Add", {erf, w_.number(1)})}), w_.number(0.5f)});
  }
  const std::string cube = w_.op("Mul", {w_.op("Pow", {x, w_.number(3)}), w_.number(0.044715f)});
  const std::string inner =
      w_.op("Mul", {w_.op("Add", {x, cube}), w_.number(static_cast<float>(std::sqrt(2 / M_PI)))});
  const std::string gate = w_.op("Add", {w_.op("Tanh", {inner}), w_.number(1)});
  return w_.op("Mul", {w_.op("Mul", {x, w_.number(0.5f)}), gate});
}

void GptBlock::add(Doubles& x, const Doubles& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

Doubles GptBlock::linear(const Doubles& x, const std::string& name, int in, int out) const {
  Doubles y;
  for (std::size_t row = 0; row < x.size() / in; ++row) {
    for (int o = 0; o < out; ++o) {
      y.push_back(at(name + ".bias")[o]);
      for (int i = 0; i < in; ++i) y.back() += x[row * in + i] * at(name + ".w")[i * out + o];
    }
  }
  return y;
}

Doubles GptBlock::normed(const Doubles& x, const std::string& name) const {
  Doubles y(x.size());
  for (std::size_t row = 0; row < x.size(); row += kWidth) {
    double mean = 0, variance = 0;
    for (int i = 0; i < kWidth; ++i) mean += x[row + i] / kWidth;
    for (int i = 0; i < kWidth; ++i) variance += std::pow(x[row + i] - mean, 2) / kWidth;
    for (int i = 0; i < kWidth; ++i)
      y[row + i] = (x[row + i] - mean) / std::sqrt(variance + 1e-5) * at(name + ".weight")[i] +
                   at(name + ".bias")[i];
  }
  return y;
}

Doubles GptBlock::attended(const Doubles& x) const {
  Doubles q, k, v;
  if (style_.split) {
    const Doubles all = linear(x, "c_attn", kWidth, 3 * kWidth);
    for (int t = 0; t < kTokens; ++t) {
      const auto row = all.begin() + t * 3 * kWidth;
      q.insert(q.end(), row, row + kWidth);
      k.insert(k.end(), row + kWidth, row + 2 * kWidth);
      v.insert(v.end(), row + 2 * kWidth, row + 3 * kWidth);
    }
  } else {
    q = linear(x, "q_proj", kWidth, kWidth);
    k = linear(x, "k_proj", kWidth, kWidth);
    v = linear(x, "v_proj", kWidth, kWidth);
  }
  constexpr int kEach = kWidth / kHeads;
  Doubles y(kTokens * kWidth, 0);
  for (int head = 0; head < kHeads; ++head) {
    for (int t = 0; t < kTokens; ++t) {
      Doubles weight(t + 1, 0);
      double sum = 0;
      for (int s = 0; s <= t; ++s) {
        for (int d = head * kEach; d < (head + 1) * kEach; ++d)
          weight[s] += q[t * kWidth + d] * k[s * kWidth + d];
        weight[s] = std::exp(weight[s] / std::sqrt(kEach));
        sum += weight[s];
      }
      for (int s = 0; s <= t; ++s) {
        for (int d = head * kEach; d < (head + 1) * kEach; ++d)
          y[t * kWidth + d] += weight[s] / sum * v[s * kWidth + d];
      }
    }
  }
  return linear(y, "attn.c_proj", kWidth, kWidth);
}

MobileBlock::MobileBlock(std::int64_t batch) {
  w_.input("image", {batch, kIn, kSize, kSize});
  const std::string stem = clip(conv("image", "stem", kStem, kIn, 3, 2, 1));
  const std::string wide = clip(conv(stem, "expand", kWide, kStem, 1, 1, 1));
  const std::string deep = clip(conv(wide, "depthwise", kWide, 1, 3, 1, kWide));
  const std::string sum = w_.op("Add", {stem, conv(deep, "project", kStem, kWide, 1, 1, 1)});
  const std::string pooled = w_.op("GlobalAveragePool", {sum});
  const std::string flat =
      batch > 0 ? w_.op("Reshape", {pooled, w_.wholes({batch, -1})}) : w_.op("Flatten", {pooled});
  weights_("classifier.weight", {kClasses, kStem}, 0.5f);
  weights_("classifier.bias", {kClasses}, 0.25f);
  w_.node("Gemm", {flat, "classifier.weight", "classifier.bias"}, {"logits"},
          {attribute("transB", std::int64_t{1})})
      .output("logits");
}

Doubles MobileBlock::reference(const float* image) const {
  Doubles x;
  for (int c = 0; c < kIn; ++c) {
    for (int p = 0; p < kSize * kSize; ++p) x.push_back(image[p * kIn + c]);
  }
  const Doubles stem = clipped(convolved(x, kSize, "stem", kStem, kIn, 3, 2, 1));
  const Doubles wide = clipped(convolved(stem, 3, "expand", kWide, kStem, 1, 1, 1));
  const Doubles deep = clipped(convolved(wide, 3, "depthwise", kWide, 1, 3, 1, kWide));
  const Doubles last = convolved(deep, 3, "project", kStem, kWide, 1, 1, 1);
  Doubles y = weights_.at("classifier.bias");
  for (int o = 0; o < kClasses; ++o) {
    for (int c = 0; c < kStem; ++c) {
      double mean = 0;
      for (int p = 0; p < 9; ++p) mean += (stem[c * 9 + p] + last[c * 9 + p]) / 9;
      y[o] += mean * weights_.at("classifier.weight")[o * kStem + c];
    }
  }
  return y;
}

std::string MobileBlock::clip(const std::string& x) {
  return w_.op("Clip", {x, w_.number(0), w_.number(6)});
}

std::string MobileBlock::conv(const std::string& x, const std::string& name, int out, int in,
                              int kernel, std::int64_t stride, std::int64_t groups) {
  weights_(name + ".weight", {out, in, kernel, kernel}, 2.0f / static_cast<float>(kernel));
  weights_(name + ".bias", {out}, 0.5f);
  const std::int64_t pad = kernel / 2;
  return w_.op(
      "Conv", {x, name + ".weight", name + ".bias"},
      {attribute("dilations", Ints{1, 1}), attribute("group", groups),
       attribute("kernel_shape", Ints{kernel, kernel}), attribute("pads", Ints{pad, pad, pad, pad}),
       attribute("strides", Ints{stride, stride})},
      "/" + name + "/Conv");
}

Doubles MobileBlock::clipped(Doubles x) {
  for (double& v : x) v = std::min(std::max(v, 0.0), 6.0);
  return x;
}

Doubles MobileBlock::convolved(const Doubles& x, int size, const std::string& name, int out, int in,
                               int kernel, int stride, int groups) const {
  const int side = (size - 1) / stride + 1, pad = kernel / 2;
  Doubles y;
  for (int o = 0; o < out; ++o) {
    for (int i = 0; i < side * side; ++i) {
      double sum = weights_.at(name + ".bias")[o];
      for (int tap = 0; tap < in * kernel * kernel; ++tap) {
        const int c = tap / (kernel * kernel) + o / (out / groups) * in;
        const int u = i / side * stride + tap / kernel % kernel - pad;
        const int v = i % side * stride + tap % kernel - pad;
        if (u < 0 || v < 0 || u >= size || v >= size) continue;
        sum += x[(c * size + u) * size + v] *
               weights_.at(name + ".weight")[o * in * kernel * kernel + tap];
      }
      y.push_back(sum);
    }
  }
  return y;
}

}  // namespace numemu::net::test
