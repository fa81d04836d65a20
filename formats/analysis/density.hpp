// Probability densities with closed-form partial moments: what exact error integration needs.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace numemu {

/// A density on the real line, with at most one point mass, at zero.
class Density {
 public:
  virtual ~Density() = default;
  virtual std::string name() const = 0;  ///< "normal(mu, sigma)" with its parameters
  /// P(X <= x), the point mass included from x = 0 on.
  virtual double cdf(double x) const = 0;
  /// Probability of exactly zero.
  virtual double zero_mass() const { return 0; }
  /// Integrals of x^0, x^1, x^2 over [low, high] (either may be infinite), without the point mass:
  /// the caller decides to which side of a boundary at zero it belongs.
  struct Moments {
    double p0, p1, p2;
  };
  virtual Moments moments(double low, double high) const = 0;
  /// The density at x, without the point mass; at the end of its support, the value inside.
  virtual double pdf(double x) const = 0;
  /// Ascending points with everything that matters between the first and the last: beyond them lie
  /// less than 1e-17 of the mass and of the second moment. Between two neighbours the density is
  /// smooth and changes by a factor that a Gauss rule of 10 points integrates to 1e-14.
  virtual std::vector<double> knots() const = 0;
};

/// Parameters must be finite and widths positive; Error otherwise.
std::unique_ptr<Density> normal_density(double mean, double sigma);
std::unique_ptr<Density> laplace_density(double location, double scale);
std::unique_ptr<Density> uniform_density(double low, double high);
/// Student's t of `nu` degrees of freedom, scale 1. Throws Error where the variance is infinite.
std::unique_ptr<Density> student_density(double nu);
/// A mixture: weight `positive` on exp(N(mu, sigma)), 1 - positive on its mirror image, mu and
/// sigma of ln|x|.
std::unique_ptr<Density> lognormal_density(double mu, double sigma, double positive);
/// `inner` with probability 1 - p, exactly zero with probability p (activations after ReLU).
std::unique_ptr<Density> with_zero_mass(std::unique_ptr<Density> inner, double p);
/// `inner` restricted to [low, high] and renormalised. Throws Error where `inner` has no mass
/// there.
std::unique_ptr<Density> truncated(std::shared_ptr<const Density> inner, double low, double high);

}  // namespace numemu
