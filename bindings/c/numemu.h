/* numemu for C: formats, block formats, matrix units, masks, test vectors, bit for bit.
 *
 * Every function that can fail returns a numemu_status; numemu_message() then has one line for people, of the calling thread.
 * No function prints, exits, throws, or installs a signal handler. Functions may be called from any thread at the same time; two
 * calls on one handle too, unless a handle says otherwise. A function named _open makes a handle that its _close frees; _close(NULL)
 * does nothing. Texts are UTF-8, end with 0, and live as long as the handle they come from, or the program.
 *
 * Structures begin with `size`: set it to sizeof the structure and the rest to 0, then the members you want. Members that later
 * versions add at the end read as 0.
 *
 * Units, formats, roundings and errors are those of the program: docs/formats.md, docs/units.md.
 */
#ifndef NUMEMU_H
#define NUMEMU_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) || !defined(__GNUC__)
#define NUMEMU_API
#else
#define NUMEMU_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- versions, errors, threads ------------------------------------------------------------------------------------------------- */

typedef int32_t numemu_status;
enum {
  NUMEMU_OK = 0,
  NUMEMU_USAGE = 1,    /* arguments that are missing, wrong or contradict each other */
  NUMEMU_FILE = 2,     /* what cannot be opened, read, made or written */
  NUMEMU_VALUE = 3,    /* what a name, a text, a file or an element says is wrong or does not fit */
  NUMEMU_MEMORY = 4,   /* what was asked for does not fit the memory */
  NUMEMU_INTERNAL = 5  /* a fault of numemu or of a library */
};

/* "0.1.0". */
NUMEMU_API const char* numemu_version(void);
/* What went wrong in the last call of this thread that failed; "" before the first. Valid until the next failure of the thread. */
NUMEMU_API const char* numemu_message(void);
/* Most threads that a call of this thread computes with; 0: as many as there are processors. No result depends on it. */
NUMEMU_API numemu_status numemu_set_threads(int32_t most);

/* Texts: writes at most `room` bytes with the 0 at the end into `text`, and the whole length without the 0 into *length; either may
 * be NULL. A text that does not fit is cut. */

/* --- arrays --------------------------------------------------------------------------------------------------------------------- */

typedef int32_t numemu_type;
enum {
  NUMEMU_INT8 = 0,
  NUMEMU_UINT8 = 1,
  NUMEMU_INT16 = 2,
  NUMEMU_UINT16 = 3,
  NUMEMU_INT32 = 4,
  NUMEMU_UINT32 = 5,
  NUMEMU_INT64 = 6,
  NUMEMU_UINT64 = 7,
  NUMEMU_FLOAT16 = 8,
  NUMEMU_FLOAT32 = 9,
  NUMEMU_FLOAT64 = 10
};
#define NUMEMU_MOST_AXES 8

/* Elements of the caller: element (i0, i1, ..) begins i0 strides[0] + i1 strides[1] + .. bytes after data. What lies in C order and
 * is aligned is used where it is, everything else is copied. Elements that a call writes must not overlap those it reads. */
typedef struct numemu_array {
  void* data;
  numemu_type type;
  int32_t axes;           /* 0: a scalar */
  const int64_t* shape;   /* of each axis */
  const int64_t* strides; /* in bytes, may be negative; NULL: C order */
} numemu_array;

/* --- formats -------------------------------------------------------------------------------------------------------------------- */

/* A scalar format by name, alias or descriptor: "float8_e4m3fn", "e4m3fn", "e3m2+finite", "codebook(FILE.npy)". */
typedef struct numemu_format numemu_format;
NUMEMU_API numemu_status numemu_format_open(const char* name, numemu_format** format);
NUMEMU_API void numemu_format_close(numemu_format*);

typedef struct numemu_format_facts {
  size_t size;
  const char* name;         /* canonical */
  int32_t bits;             /* of a code */
  numemu_type type;         /* of an array of codes */
  int32_t exponent_bits, mantissa_bits, bias; /* 0 unless floating */
  int32_t is_signed, has_infinity, has_nan;
  double largest, smallest_normal, smallest;  /* NaN where there is none, or a double cannot hold it */
} numemu_format_facts;
NUMEMU_API numemu_status numemu_format_describe(const numemu_format*, numemu_format_facts*);
/* The i-th named format, or NULL. */
NUMEMU_API const char* numemu_format_name(int32_t i);

/* Exception flags, in the order of RISC-V fflags. */
enum { NUMEMU_INEXACT = 1, NUMEMU_UNDERFLOW = 2, NUMEMU_OVERFLOW = 4, NUMEMU_DIVIDE_BY_ZERO = 8, NUMEMU_INVALID = 16 };
/* Elements with each flag. */
typedef struct numemu_counts {
  size_t size;
  int64_t elements, inexact, underflow, overflow, invalid;
} numemu_counts;

/* How numbers are rounded: "rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(N)", "sr(N,a|b|c|odd)"; "saturate", "propagate", "ieee". */
typedef struct numemu_rounding numemu_rounding;
NUMEMU_API numemu_status numemu_rounding_open(const char* rounding, const char* overflow, numemu_rounding** out);
NUMEMU_API void numemu_rounding_close(numemu_rounding*);

/* Random bits of stochastic rounding: a function of these and the element (docs/random.md), or words of the caller, one for each
 * element, r in the low N bits. A NULL pointer to this structure: all 0. */
typedef struct numemu_random {
  size_t size;
  uint64_t seed;
  uint32_t stream; /* 0: 1, quantize */
  uint32_t tensor, draw;
  const uint32_t* words; /* in place of the function */
} numemu_random;
/* The `bits` (1 to 32) random bits of elements first, first + 1, .. into words[0 .. n - 1]. */
NUMEMU_API numemu_status numemu_random_bits(const numemu_random*, int32_t bits, uint64_t first, int64_t n, uint32_t* words);

/* Numbers (float32, float64, or codes of `from`) to codes of `to`, each rounded once. `from` NULL: `in` is float32 or float64.
 * `flags`: NULL, or uint8 of the same shape. `counts`: NULL, or what they sum up to. */
NUMEMU_API numemu_status numemu_encode(const numemu_format* to, const numemu_rounding*, const numemu_random*, const numemu_format* from,
                                       const numemu_array* in, const numemu_array* codes, const numemu_array* flags,
                                       numemu_counts* counts);
/* The numbers that codes mean, exactly: float32 or float64. Where the type cannot hold every value of the format: NUMEMU_VALUE. */
NUMEMU_API numemu_status numemu_decode(const numemu_format*, const numemu_array* codes, const numemu_array* numbers);
/* One number: x rounded to a code, r the random bits of sr(N). `flags` may be NULL. */
NUMEMU_API numemu_status numemu_encode_one(const numemu_format*, const numemu_rounding*, double x, uint32_t r, uint64_t* code,
                                           uint8_t* flags);
NUMEMU_API numemu_status numemu_decode_one(const numemu_format*, uint64_t code, double* x);

/* --- block formats -------------------------------------------------------------------------------------------------------------- */

/* "mxfp4", "nvfp4", "mx(ELEMENT,SIZE)", "bfp(K,SIZE)", "group(int4,128,float16)". */
typedef struct numemu_block numemu_block;
NUMEMU_API numemu_status numemu_block_open(const char* name, numemu_block** block);
NUMEMU_API void numemu_block_close(numemu_block*);

typedef struct numemu_block_facts {
  size_t size;
  const char* name;
  const char* element; /* formats */
  const char* scale;
  numemu_type code_type, scale_type, zero_point_type;
  int64_t block;            /* elements; 0: a whole channel, row or tensor */
  int32_t has_tensor_scale, has_zero_points;
  double bits;              /* stored per element of full blocks, without a tensor's own */
} numemu_block_facts;
NUMEMU_API numemu_status numemu_block_describe(const numemu_block*, numemu_block_facts*);
/* The shape of the scales of an array: *axes extents into shape[NUMEMU_MOST_AXES]. */
NUMEMU_API numemu_status numemu_block_scale_shape(const numemu_block*, int32_t axes, const int64_t* shape, int32_t axis, int32_t* scale_axes,
                                                  int64_t* scale_shape);

/* Parts of quantized numbers; what is NULL is not written. Scales and zero points have the shape of numemu_block_scale_shape(). */
typedef struct numemu_quantized {
  size_t size;
  const numemu_array* values; /* float32, the shape of x: what the codes mean */
  const numemu_array* codes;
  const numemu_array* scales;
  const numemu_array* zero_points;
  float* tensor_scale;
} numemu_quantized;
typedef struct numemu_quantize_options {
  size_t size;
  const char* scale_rule;  /* NULL: the block format's own */
  const char* scale_round; /* NULL; of real scales "rup" or "rne" */
  int32_t axis;            /* negative counts from the end; with has_axis 0 the last one */
  int32_t has_axis;
  int32_t ignore_nonfinite, full_range, no_tensor_scale;
  const numemu_array* scales; /* NULL, or in place of a rule's: codes of the scale format (float32 ones are numbers) */
  const float* tensor_scale;  /* NULL, or in place of the one from the largest magnitude */
} numemu_quantize_options;
/* x: float32. The rounding, randomness and options may be NULL: RNE saturating, none, all 0. */
NUMEMU_API numemu_status numemu_quantize(const numemu_block*, const numemu_rounding*, const numemu_random*, const numemu_quantize_options*,
                                         const numemu_array* x, const numemu_quantized* out, numemu_counts* counts);
/* Codes, scales, zero points and tensor scale of `in` to its values. */
NUMEMU_API numemu_status numemu_dequantize(const numemu_block*, const numemu_quantize_options*, const numemu_quantized* in);

/* --- masks ---------------------------------------------------------------------------------------------------------------------- */

/* "greedy(2:4)", "transposable(2:4)", "mvue(1:2)", ..: docs/masks.md. */
typedef struct numemu_mask numemu_mask;
NUMEMU_API numemu_status numemu_mask_open(const char* rule, numemu_mask** mask);
NUMEMU_API void numemu_mask_close(numemu_mask*);
/* x: float32. Groups run along its last axis (of a rule with axis=batch the first), tiles are squares of its last two. `y` (float32)
 * and `keep` (uint8, 1 where kept) may be NULL. */
NUMEMU_API numemu_status numemu_mask_apply(const numemu_mask*, const numemu_random*, const numemu_array* x, const numemu_array* y,
                                           const numemu_array* keep);

/* --- operations, vectors, verification ------------------------------------------------------------------------------------------- */

/* What one record is about: an operation on formats, exact and rounded once, or a matrix unit with K products. */
typedef struct numemu_operation numemu_operation;
/* The i-th operation, or NULL: "convert", "mul", "div", "sqrt", "minimum", "lt", .. (docs/oracle.md lists them). `k`: products of a dot; 0 is 1, as of all others. */
NUMEMU_API const char* numemu_operation_name(int32_t i);
NUMEMU_API numemu_status numemu_operation_open(const char* name, const numemu_format* from, const numemu_format* to,
                                               const numemu_rounding*, int64_t k, numemu_operation** out);
typedef struct numemu_unit numemu_unit;
/* `a` and `b` where the unit takes any format, else NULL; k = 0: as many products as one instruction has. */
NUMEMU_API numemu_status numemu_operation_of_unit(const numemu_unit*, const numemu_format* a, const numemu_format* b, int64_t k,
                                                  numemu_operation** out);
/* From the first line of a file of vectors: "# numemu-vectors 1 op=mul from=float16 .." */
NUMEMU_API numemu_status numemu_operation_of_line(const char* line, numemu_operation** out);
NUMEMU_API void numemu_operation_close(numemu_operation*);
NUMEMU_API const char* numemu_operation_line(const numemu_operation*);

/* A record is a list of fields, each `count` codes; columns[f][i * count + e] is element e of field f of record i. */
typedef struct numemu_field {
  size_t size;
  const char* name;   /* "a", "b", "c", "in", "random", "sa", "sb", "e", "out", "d", "flags", .. */
  const char* format; /* NULL: no number, or two's complement */
  int32_t bits;
  int32_t is_result;
  int64_t count;
} numemu_field;
NUMEMU_API numemu_status numemu_operation_describe(const numemu_operation*, int32_t f, numemu_field*);
NUMEMU_API int32_t numemu_operation_fields(const numemu_operation*);
/* Computes the fields that are results of n records, by the specification. A NULL column of an input is all 0, one of a result is not
 * written. NUMEMU_VALUE names the record whose code its format does not have. */
NUMEMU_API numemu_status numemu_operation_compute(const numemu_operation*, int64_t n, uint64_t* const* columns);
/* What is known about record i: for an operation the exact result between its two neighbours, for a unit its steps. */
NUMEMU_API numemu_status numemu_operation_explain(const numemu_operation*, uint64_t* const* columns, int64_t i, char* text, size_t room,
                                                  size_t* length);

/* Records of a style, an iterator. One thread at a time. `style` NULL: "mixed"; level 1 or 2; n = 0: as many as there are. */
typedef struct numemu_vectors numemu_vectors;
NUMEMU_API numemu_status numemu_vectors_open(const numemu_operation*, const char* style, int32_t level, uint64_t seed, int64_t n,
                                             numemu_vectors** out);
NUMEMU_API void numemu_vectors_close(numemu_vectors*);
NUMEMU_API int64_t numemu_vectors_size(const numemu_vectors*);
/* The next records, at most `most`, into columns (a NULL column is left out); *got is 0 at the end. */
NUMEMU_API numemu_status numemu_vectors_next(numemu_vectors*, int64_t most, uint64_t* const* columns, int64_t* got);
/* Goes on with record i. */
NUMEMU_API numemu_status numemu_vectors_seek(numemu_vectors*, int64_t i);

/* Which results are equal. */
enum { NUMEMU_NAN_ANY = 0, NUMEMU_NAN_CANONICAL = 1, NUMEMU_NAN_PAYLOAD = 2 };
typedef struct numemu_tolerance {
  size_t size;
  int32_t nan;
  int32_t ignore_zero_sign, compare_flags;
  uint64_t ulps;
} numemu_tolerance;
typedef struct numemu_verdict {
  size_t size;
  int64_t records, matches, mismatches;
  int64_t tolerated;    /* of the matches: within the tolerance, not equal */
  int64_t first, worst; /* numbers of mismatched records; -1: none */
  uint64_t worst_ulps;  /* UINT64_MAX: NaN beside a number */
} numemu_verdict;
/* Holds n records, all their fields given, against what they must be. `text` (may be NULL): kinds of mismatches, and the rule that
 * explains them. The tolerance may be NULL: all 0. */
NUMEMU_API numemu_status numemu_operation_verify(const numemu_operation*, const numemu_tolerance*, int64_t n, uint64_t* const* columns,
                                                 numemu_verdict*, char* text, size_t room, size_t* length);

/* --- matrix units ---------------------------------------------------------------------------------------------------------------- */

/* By name, alias or unambiguous short form ("h100.wgmma.e4m3.f32"), by a described name ("neutral.mac.e5m10.sr8"), by the path of a
 * file NAME.json, or by the JSON text itself, which begins with "{". */
NUMEMU_API numemu_status numemu_unit_open(const char* name, numemu_unit** unit);
NUMEMU_API void numemu_unit_close(numemu_unit*);
/* The i-th unit of the catalogue, or NULL. */
NUMEMU_API const char* numemu_unit_name(int32_t i);

typedef struct numemu_unit_facts {
  size_t size;
  const char* name;
  const char* accumulation; /* its arithmetic in a line */
  const char* source;
  char grade;            /* of its evidence: docs/units.md */
  const char* a;         /* formats; NULL: any */
  const char* b;
  const char* d;         /* NULL: two's complement */
  int32_t d_bits;
  numemu_type c_type, d_type;
  int64_t k;             /* products of one instruction; 0: any number */
  int64_t block;         /* elements per scale; 0: no scales */
  const char* scale;     /* format of the scales, or NULL */
  int32_t kept, group;   /* N of M in A; 0: dense */
  int32_t has_flags, is_stochastic;
} numemu_unit_facts;
NUMEMU_API numemu_status numemu_unit_describe(const numemu_unit*, numemu_unit_facts*);
/* Its canonical JSON. */
NUMEMU_API numemu_status numemu_unit_json(const numemu_unit*, char* text, size_t room, size_t* length);

/* D = A x B + C. Shapes as `numemu gemm` and `numemu dot` take them (docs/arrays.md):
 *   products: A [P x] M x K, B [P x] K x N (by_columns: N x K), C and D [P x] M x N; scales [P x] M x blocks and blocks x N;
 *   dots: A and B N x K, or one row for all; C and D N.
 * Sparse units: A has the kept elements, `meta` their places. C may be NULL: +0. */
typedef struct numemu_product {
  size_t size;
  const numemu_array* a;
  const numemu_array* b;
  const numemu_array* c;
  const numemu_array* d; /* written */
  const numemu_array* scale_a;
  const numemu_array* scale_b;
  const numemu_array* meta;
  const numemu_format* format_a; /* where the unit takes any format, else NULL */
  const numemu_format* format_b; /* NULL: that of A */
  const char* meta_layout;       /* NULL or "index", or "ptx" */
  const numemu_array* flags;     /* NULL, or uint8 of the shape of D: exception flags, by the specification */
  const float* alpha;            /* D = RNE(RNE(alpha AB) + C) in float32 */
  int32_t dots, by_columns;
  int32_t reference;             /* by the specification: slower, the same bits */
  uint64_t seed;                 /* of stochastic registers */
} numemu_product;
NUMEMU_API numemu_status numemu_multiply(const numemu_unit*, const numemu_product*);

/* How output number i (in C order) of a product came about: text, or records. */
NUMEMU_API numemu_status numemu_trace_text(const numemu_unit*, const numemu_product*, int64_t i, char* text, size_t room, size_t* length);
typedef struct numemu_trace numemu_trace;
NUMEMU_API numemu_status numemu_trace_open(const numemu_unit*, const numemu_product*, int64_t i, numemu_trace** out);
NUMEMU_API void numemu_trace_close(numemu_trace*);
NUMEMU_API int64_t numemu_trace_steps(const numemu_trace*);
/* Numbers are rounded to double where they need more bits; NaN where there is none. Losses are what should have been minus what was. */
typedef struct numemu_trace_step {
  size_t size;
  const char* what;         /* "step 3, k 96..127" */
  int64_t instruction;      /* that it belongs to */
  int64_t terms;
  int32_t largest_exponent; /* of the alignment; INT32_MIN: it does not align */
  int32_t has_result;       /* 0: a NaN that the register's format does not have */
  uint64_t result;          /* code of the register after */
  double sum;               /* before it is rounded to the register */
  double lost;              /* by that rounding */
  double exact;             /* sum of the products that the register now has, and of C where it is in */
} numemu_trace_step;
typedef struct numemu_trace_term {
  size_t size;
  const char* what;         /* "product", "padding", "C", "register", "sum of k 0..3", .. */
  int64_t k;                /* of a product; else -1 */
  uint64_t a, b;            /* codes of a product */
  int32_t exponent;         /* with which it is aligned; INT32_MIN: it is not */
  double product;           /* before any cut or rounding */
  double kept;              /* what was added */
  double lost;
} numemu_trace_term;
NUMEMU_API numemu_status numemu_trace_step_of(const numemu_trace*, int64_t step, numemu_trace_step*);
NUMEMU_API numemu_status numemu_trace_term_of(const numemu_trace*, int64_t step, int64_t term, numemu_trace_term*);

/* Why a result computed elsewhere differs: lines about output i, whose code is `given`. */
NUMEMU_API numemu_status numemu_explain(const numemu_unit*, const numemu_product*, int64_t i, uint64_t given, char* text, size_t room,
                                        size_t* length);

#ifdef __cplusplus
}
#endif
#endif
