// Closed forms of the error of KURE's quantizer under uniform and normal weights (Shkolnik et al.,
// NeurIPS 2020, lemmas 1 to 3). Q(x) = D round(x / D), and sign(x) tau beyond tau = 2^(M-1) D: with
// M bits 2^M + 1 levels, one more than M bits have.
#pragma once
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::kure {

enum class Law : unsigned char { uniform, normal };

/// E[(x - Q(x))^2] at step D of weights of unit variance: uniform on +-sqrt 3, exact for steps up
/// to the largest at which tau is inside, D^2 / 12 above; normal, with uniform errors inside tau.
double mse(Law, int bits, double step);
/// mse(), exact for the uniform law at steps that reach beyond it, too: (k D^3 / 12 + r^3 / 3) /
/// a where its end is r away from level k.
double exact_mse(Law, int bits, double step);
/// The uniform law on [-a, a].
double uniform_mse(double a, int bits, double step);
/// Its stationary step 2a / (2^M + 1), and the published approximation 2a / 2^M.
double uniform_step(double a, int bits);
double published_step(double a, int bits);
/// The step of the least mse(); for the uniform law uniform_step(sqrt 3).
double best_step(Law, int bits);
/// The second derivative of mse() along the step, without unit: it does not change with the scale
/// of the weights. Of the uniform law in closed form, of the normal one by central differences.
double curvature(Law, int bits, double step);

/// |mse(step) - mse(step (1 + change))| at the law's best step: Gamma of the paper.
double sensitivity(Law, int bits, double change);

/// The levels of M bits in units of the step, -2^(M-1) to 2^(M-1).
std::vector<double> levels(int bits);

/// Writes the levels of M bits, for the format codebook(FILE), into the run's folder; returns FILE.
std::string codebook_file(const ExperimentRun&, int bits);

/// The error of uniform and normal numbers over steps against the closed forms, the optimal steps,
/// and both readings of the theorem (settings bits, factors, samples).
void add_curves(const ExperimentRun&, Conclusion&);

/// Networks trained with and without the penalty, their weights quantized at detuned steps, steps
/// rounded to powers of two and few bits (settings net, data, penalty, accuracy_bits, factors,
/// epochs, train_samples, eval_samples, seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::kure
