/* DPI-C of numemu_pkg.sv over numemu.h: codes of one transaction, packed vectors, open arrays. C99, and C++ as Verilator compiles it.
 *
 * A handle holds one transaction, and the transactions that a scoreboard keeps for its account. One thread at a time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numemu.h"
#include "svdpi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  MOST_FIELDS = 16,
  /* Transactions that the account reads: all of the first, then mismatches only. */
  MOST_KEPT = 4096,
  MOST_KEPT_WRONG = 8192,
  CHUNK = 64, /* vectors made at a time */
  TEXT = 1 << 16
};
enum { MATCH = 0, TOLERATED = 1, MISMATCH = 2 };

typedef struct {
  numemu_operation* operation;
  numemu_field field[MOST_FIELDS];
  int fields, result, flags; /* result, flags: numbers of fields; flags -1 where there are none */
  int words;                 /* of the simulator's vectors */
  int lacks_flags;           /* results are there, flags are not: nobody has asked for them */
  uint64_t* now[MOST_FIELDS];  /* inputs and, in a check, the results of the design */
  uint64_t* want[MOST_FIELDS]; /* results by the specification; NULL of inputs */
  uint64_t* kept[MOST_FIELDS];
  int64_t kept_size, kept_room;
  char text[TEXT];
} handle;

typedef struct {
  numemu_vectors* vectors;
  uint64_t* chunk[MOST_FIELDS];
  int64_t size, at;
} stream;

/* What this file itself refuses; empty: the library's message is the last. */
static char refused[256];

static int refuse(const char* text) {
  snprintf(refused, sizeof refused, "%s", text);
  return NUMEMU_USAGE;
}

/* Status of a call of the library, whose message is now the last. */
static int told(numemu_status status) {
  if (status != NUMEMU_OK) refused[0] = 0;
  return status;
}

const char* numemu_sv_message(void) { return refused[0] != 0 ? refused : numemu_message(); }
const char* numemu_sv_version(void) { return numemu_version(); }
int numemu_sv_set_threads(int most) { return told(numemu_set_threads(most)); }

/* A null chandle is one whose _open failed, or was never called. */
static const char* kNotOpen = "expected an open handle, found null";

/* --- handles -------------------------------------------------------------------------------------------------------------------- */

static size_t codes_of(const handle* h, int f) { return (size_t)h->field[f].count; }

void numemu_sv_close(void* of) {
  handle* h = (handle*)of;
  if (h == NULL) return;
  for (int f = 0; f < h->fields; ++f) {
    free(h->now[f]);
    free(h->want[f]);
    free(h->kept[f]);
  }
  numemu_operation_close(h->operation);
  free(h);
}

/* Takes the operation over. */
static int make_handle(numemu_operation* operation, int bits, void** out) {
  *out = NULL;
  handle* h = (handle*)calloc(1, sizeof *h);
  if (h == NULL) {
    numemu_operation_close(operation);
    return refuse("memory for a transaction: expected more");
  }
  const int fields = numemu_operation_fields(operation);
  h->operation = operation;
  h->words = (bits + 31) / 32;
  h->result = h->flags = -1;
  int status = fields <= MOST_FIELDS ? NUMEMU_OK : refuse("expected at most 16 fields in a transaction");
  for (int f = 0; status == NUMEMU_OK && f < fields; ++f) {
    numemu_field* field = &h->field[f];
    field->size = sizeof *field;
    status = told(numemu_operation_describe(operation, f, field));
    if (status != NUMEMU_OK) break;
    if (field->is_result && strcmp(field->name, "flags") == 0) h->flags = f;
    if (field->is_result && h->result < 0) h->result = f;
    if (field->bits * field->count > bits) {
      snprintf(refused, sizeof refused, "field %s: expected at most %d bits, NUMEMU_VECTOR_BITS, found %" PRId64, field->name, bits,
               field->bits * field->count);
      status = NUMEMU_USAGE;
      break;
    }
    h->now[f] = (uint64_t*)calloc(codes_of(h, f), sizeof(uint64_t));
    if (field->is_result) h->want[f] = (uint64_t*)calloc(codes_of(h, f), sizeof(uint64_t));
    h->fields = f + 1;
    if (h->now[f] == NULL || (field->is_result && h->want[f] == NULL)) status = refuse("memory for a transaction: expected more");
  }
  if (status != NUMEMU_OK) {
    numemu_sv_close(h);
    return status;
  }
  *out = h;
  return NUMEMU_OK;
}

/* "" as NULL. */
static int open_format(const char* name, numemu_format** format) {
  *format = NULL;
  return name[0] == 0 ? NUMEMU_OK : told(numemu_format_open(name, format));
}

int numemu_sv_open_unit(const char* name, const char* a, const char* b, int k, int bits, void** out) {
  numemu_unit* unit = NULL;
  numemu_format *of_a = NULL, *of_b = NULL;
  numemu_operation* operation = NULL;
  *out = NULL;
  int status = told(numemu_unit_open(name, &unit));
  if (status == NUMEMU_OK) status = open_format(a, &of_a);
  if (status == NUMEMU_OK) status = open_format(b, &of_b);
  if (status == NUMEMU_OK) status = told(numemu_operation_of_unit(unit, of_a, of_b, k, &operation));
  if (status == NUMEMU_OK) status = make_handle(operation, bits, out);
  numemu_format_close(of_a);
  numemu_format_close(of_b);
  numemu_unit_close(unit);
  return status;
}

int numemu_sv_open(const char* name, const char* from, const char* to, const char* rounding, const char* overflow, int k, int bits,
                   void** out) {
  numemu_format *source = NULL, *target = NULL;
  numemu_rounding* how = NULL;
  numemu_operation* operation = NULL;
  *out = NULL;
  int status = told(numemu_format_open(from, &source));
  if (status == NUMEMU_OK && to[0] != 0) status = told(numemu_format_open(to, &target));
  if (status == NUMEMU_OK) status = told(numemu_rounding_open(rounding, overflow, &how));
  if (status == NUMEMU_OK) status = told(numemu_operation_open(name, source, target, how, k, &operation));
  if (status == NUMEMU_OK) status = make_handle(operation, bits, out);
  numemu_rounding_close(how);
  numemu_format_close(source);
  numemu_format_close(target);
  return status;
}

int numemu_sv_open_line(const char* line, int bits, void** out) {
  numemu_operation* operation = NULL;
  *out = NULL;
  const int status = told(numemu_operation_of_line(line, &operation));
  return status != NUMEMU_OK ? status : make_handle(operation, bits, out);
}

const char* numemu_sv_line(const void* of) { return of == NULL ? "" : numemu_operation_line(((const handle*)of)->operation); }
int numemu_sv_fields(const void* of) { return of == NULL ? 0 : ((const handle*)of)->fields; }

/* Number of the field of that name; -1: none. */
int numemu_sv_field(const void* of, const char* name) {
  const handle* h = (const handle*)of;
  for (int f = 0; h != NULL && f < h->fields; ++f) {
    if (strcmp(h->field[f].name, name) == 0) return f;
  }
  return -1;
}

/* Field f, or one without a name and bits where there is none. */
static numemu_field field_of(const void* of, int f) {
  static const numemu_field none = {0, NULL, NULL, 0, 0, 0};
  return f >= 0 && f < numemu_sv_fields(of) ? ((const handle*)of)->field[f] : none;
}

const char* numemu_sv_field_name(const void* of, int f) {
  const char* name = field_of(of, f).name;
  return name != NULL ? name : "";
}
int numemu_sv_field_bits(const void* of, int f) { return field_of(of, f).bits; }
int numemu_sv_field_count(const void* of, int f) { return (int)field_of(of, f).count; }
int numemu_sv_field_is_result(const void* of, int f) { return field_of(of, f).is_result; }

/* --- packed vectors: element 0 in the lowest bits -------------------------------------------------------------------------------- */

static void unpack(const svBitVecVal* vector, int bits, size_t n, uint64_t* codes) {
  const uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
  size_t at = 0;
  for (size_t i = 0; i < n; ++i, at += (size_t)bits) {
    const size_t word = at / 32, shift = at % 32;
    uint64_t code = vector[word] >> shift;
    size_t have = 32 - shift;
    for (size_t w = word + 1; have < (size_t)bits; ++w, have += 32) code |= (uint64_t)vector[w] << have;
    codes[i] = code & mask;
  }
}

static void pack(const uint64_t* codes, int bits, size_t n, svBitVecVal* vector, int words) {
  memset(vector, 0, (size_t)words * sizeof *vector);
  size_t at = 0;
  for (size_t i = 0; i < n; ++i, at += (size_t)bits) {
    const size_t word = at / 32, shift = at % 32;
    vector[word] |= (svBitVecVal)(codes[i] << shift);
    size_t have = 32 - shift;
    for (size_t w = word + 1; have < (size_t)bits; ++w, have += 32) vector[w] |= (svBitVecVal)(codes[i] >> have);
  }
}

static const char* kNoField = "expected the number of a field of the operation";

int numemu_sv_set(void* of, int f, const svBitVecVal* value) {
  handle* h = (handle*)of;
  if (f < 0 || f >= numemu_sv_fields(of)) return refuse(h == NULL ? kNotOpen : kNoField);
  unpack(value, h->field[f].bits, codes_of(h, f), h->now[f]);
  return NUMEMU_OK;
}

/* Into `want`. Without flags the library computes as fast as it multiplies; with them by its reference. */
static int compute(handle* h, int with_flags) {
  uint64_t* columns[MOST_FIELDS] = {NULL};
  for (int f = 0; f < h->fields; ++f) columns[f] = h->field[f].is_result ? h->want[f] : h->now[f];
  h->lacks_flags = h->flags >= 0 && !with_flags;
  if (h->lacks_flags) columns[h->flags] = NULL;
  return told(numemu_operation_compute(h->operation, 1, columns));
}

/* Before flags are read. */
static int settle(handle* h) {
  if (!h->lacks_flags) return NUMEMU_OK;
  const int status = compute(h, 1);
  h->now[h->flags][0] = h->want[h->flags][0];
  return status;
}

/* An input as it was set, or a result by the specification. */
int numemu_sv_get(void* of, int f, svBitVecVal* value) {
  handle* h = (handle*)of;
  if (f < 0 || f >= numemu_sv_fields(of)) return refuse(h == NULL ? kNotOpen : kNoField);
  if (f == h->flags) {
    const int status = settle(h);
    if (status != NUMEMU_OK) return status;
  }
  pack(h->want[f] != NULL ? h->want[f] : h->now[f], h->field[f].bits, codes_of(h, f), value, h->words);
  return NUMEMU_OK;
}

/* The transaction with its results by the specification, which an explanation takes for given. */
static int compute_now(handle* h, int with_flags) {
  const int status = compute(h, with_flags);
  for (int f = 0; f < h->fields; ++f) {
    if (h->want[f] != NULL) memcpy(h->now[f], h->want[f], codes_of(h, f) * sizeof(uint64_t));
  }
  return status;
}

int numemu_sv_compute(void* of) { return of == NULL ? refuse(kNotOpen) : compute_now((handle*)of, 1); }

/* In one call: fields named a, b, c to the result. */
static int dot(void* of, const svBitVecVal* a, const svBitVecVal* b, uint64_t c, uint64_t* d, int with_flags) {
  handle* h = (handle*)of;
  const int at_c = numemu_sv_field(of, "c");
  *d = 0;
  if (numemu_sv_field(of, "a") != 0 || numemu_sv_field(of, "b") != 1) return refuse("expected an operation of a and b");
  unpack(a, h->field[0].bits, codes_of(h, 0), h->now[0]);
  unpack(b, h->field[1].bits, codes_of(h, 1), h->now[1]);
  if (at_c >= 0) h->now[at_c][0] = c;
  const int status = compute_now(h, with_flags);
  *d = h->want[h->result][0];
  return status;
}

static unsigned char flags_of(const handle* h) { return h != NULL && h->flags >= 0 ? (unsigned char)h->want[h->flags][0] : 0; }

int numemu_sv_dot(void* of, const svBitVecVal* a, const svBitVecVal* b, uint64_t c, uint64_t* d, unsigned char* flags) {
  const int status = dot(of, a, b, c, d, 1);
  *flags = status == NUMEMU_OK ? flags_of((handle*)of) : 0;
  return status;
}

int numemu_sv_dot_code(void* of, const svBitVecVal* a, const svBitVecVal* b, uint64_t c, uint64_t* d) {
  return dot(of, a, b, c, d, 0);
}

/* One code for each of the first inputs: in; a, b; a, b, c. */
int numemu_sv_scalar(void* of, uint64_t x, uint64_t y, uint64_t z, uint64_t* out, unsigned char* flags) {
  handle* h = (handle*)of;
  const uint64_t codes[3] = {x, y, z};
  *out = *flags = 0;
  if (h == NULL) return refuse(kNotOpen);
  for (int f = 0; f < h->fields && f < 3; ++f) {
    if (h->field[f].is_result) break;
    if (h->field[f].count != 1) return refuse("expected an operation of single codes");
    h->now[f][0] = codes[f];
  }
  const int status = compute_now(h, 1);
  *out = h->want[h->result][0];
  *flags = flags_of(h);
  return status;
}

/* --- open arrays of 64-bit codes, one dimension ---------------------------------------------------------------------------------- */

/* Elements of the array from its lowest index on; simulators may keep them in another layout than C, so that there is no pointer. */
static void copy_array(const svOpenArrayHandle array, uint64_t* codes, size_t n, int to_simulator) {
  uint64_t* whole = (uint64_t*)svGetArrayPtr(array);
  /* A pointer without a descending range: element order is that of memory. */
  if (whole != NULL && svLeft(array, 1) <= svRight(array, 1) && (size_t)svSizeOfArray(array) == n * sizeof *codes) {
    memcpy(to_simulator ? whole : codes, to_simulator ? codes : whole, n * sizeof *codes);
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    svBitVecVal words[2];
    const int index = svLow(array, 1) + (int)i;
    if (to_simulator) {
      words[0] = (svBitVecVal)codes[i];
      words[1] = (svBitVecVal)(codes[i] >> 32);
      svPutBitArrElem1VecVal(array, words, index);
    } else {
      svGetBitArrElem1VecVal(words, array, index);
      codes[i] = (uint64_t)words[1] << 32 | words[0];
    }
  }
}

/* Dots of svSize(d) records: a and b have svSize(d) times the elements of theirs, c one each, or none at all: +0. */
int numemu_sv_dots(void* of, const svOpenArrayHandle a, const svOpenArrayHandle b, const svOpenArrayHandle c, const svOpenArrayHandle d) {
  handle* h = (handle*)of;
  const svOpenArrayHandle arrays[MOST_FIELDS] = {a, b, c};
  const char* const names[] = {"a", "b", "c"};
  uint64_t* columns[MOST_FIELDS] = {NULL};
  const int64_t n = svSize(d, 1);
  if (h == NULL) return refuse(kNotOpen);
  int status = n > 0 ? NUMEMU_OK : refuse("d: expected at least one element");
  for (int i = 0; i < 3 && status == NUMEMU_OK; ++i) {
    const int f = numemu_sv_field(of, names[i]);
    if (f < 0) continue;
    const int64_t elements = n * h->field[f].count, found = svSize(arrays[i], 1);
    if (found != elements) {
      snprintf(refused, sizeof refused, "%s: expected %" PRId64 " elements, %" PRId64 " for each of %" PRId64 " in d, found %" PRId64,
               names[i], elements, h->field[f].count, n, found);
      status = NUMEMU_USAGE;
    } else if ((columns[f] = (uint64_t*)malloc((size_t)elements * sizeof(uint64_t))) == NULL) {
      status = refuse("memory for a batch: expected more");
    } else {
      copy_array(arrays[i], columns[f], (size_t)elements, 0);
    }
  }
  if (status == NUMEMU_OK && (columns[h->result] = (uint64_t*)malloc((size_t)n * sizeof(uint64_t))) == NULL)
    status = refuse("memory for a batch: expected more");
  if (status == NUMEMU_OK) status = told(numemu_operation_compute(h->operation, n, columns));
  if (status == NUMEMU_OK) copy_array(d, columns[h->result], (size_t)n, 1);
  for (int f = 0; f < h->fields; ++f) free(columns[f]);
  return status;
}

/* --- scoreboards ------------------------------------------------------------------------------------------------------------------ */

static int keep(handle* h, int wrong) {
  if (h->kept_size >= (wrong ? MOST_KEPT_WRONG : MOST_KEPT)) return NUMEMU_OK;
  if (h->kept_size == h->kept_room) {
    const int64_t room = h->kept_room == 0 ? 64 : 2 * h->kept_room;
    for (int f = 0; f < h->fields; ++f) {
      uint64_t* more = (uint64_t*)realloc(h->kept[f], (size_t)room * codes_of(h, f) * sizeof(uint64_t));
      if (more == NULL) return refuse("memory for the account: expected more");
      h->kept[f] = more;
    }
    h->kept_room = room;
  }
  for (int f = 0; f < h->fields; ++f)
    memcpy(h->kept[f] + (size_t)h->kept_size * codes_of(h, f), h->now[f], codes_of(h, f) * sizeof(uint64_t));
  ++h->kept_size;
  return NUMEMU_OK;
}

static void set_tolerance(numemu_tolerance* t, int nan, int ignore_zero_sign, int compare_flags, uint64_t ulps) {
  memset(t, 0, sizeof *t);
  t->size = sizeof *t;
  t->nan = nan;
  t->ignore_zero_sign = ignore_zero_sign;
  t->compare_flags = compare_flags;
  t->ulps = ulps;
}

/* The transaction, with `got` in place of its result. */
int numemu_sv_check(void* of, const svBitVecVal* got, unsigned char flags, int nan, int ignore_zero_sign, int compare_flags,
                    uint64_t ulps, int* verdict) {
  handle* h = (handle*)of;
  *verdict = MISMATCH;
  if (h == NULL) return refuse(kNotOpen);
  int status = compute(h, compare_flags);
  if (status != NUMEMU_OK) return status;
  unpack(got, h->field[h->result].bits, codes_of(h, h->result), h->now[h->result]);
  if (h->flags >= 0) h->now[h->flags][0] = compare_flags ? flags : h->want[h->flags][0];
  if (memcmp(h->now[h->result], h->want[h->result], codes_of(h, h->result) * sizeof(uint64_t)) == 0 &&
      (h->flags < 0 || h->now[h->flags][0] == h->want[h->flags][0])) {
    *verdict = MATCH;
  } else {
    numemu_tolerance tolerance;
    numemu_verdict found;
    memset(&found, 0, sizeof found);
    found.size = sizeof found;
    set_tolerance(&tolerance, nan, ignore_zero_sign, compare_flags && h->flags >= 0, ulps);
    status = told(numemu_operation_verify(h->operation, &tolerance, 1, h->now, &found, NULL, 0, NULL));
    if (status != NUMEMU_OK) return status;
    if (found.mismatches == 0) *verdict = TOLERATED;
  }
  return keep(h, *verdict == MISMATCH);
}

/* How the specification computes the transaction. */
const char* numemu_sv_explain(void* of) {
  handle* h = (handle*)of;
  if (h == NULL) return kNotOpen;
  if (settle(h) != NUMEMU_OK) return numemu_sv_message();
  const int status = told(numemu_operation_explain(h->operation, h->now, 0, h->text, sizeof h->text, NULL));
  return status == NUMEMU_OK ? h->text : numemu_sv_message();
}

/* Kinds of the mismatches kept, and the rule that explains them. */
const char* numemu_sv_account(void* of, int nan, int ignore_zero_sign, int compare_flags, uint64_t ulps) {
  handle* h = (handle*)of;
  numemu_tolerance tolerance;
  numemu_verdict found;
  if (h == NULL || h->kept_size == 0) return "";
  memset(&found, 0, sizeof found);
  found.size = sizeof found;
  set_tolerance(&tolerance, nan, ignore_zero_sign, compare_flags && h->flags >= 0, ulps);
  const int status =
      told(numemu_operation_verify(h->operation, &tolerance, h->kept_size, h->kept, &found, h->text, sizeof h->text, NULL));
  return status == NUMEMU_OK ? h->text : numemu_sv_message();
}

/* --- vectors ---------------------------------------------------------------------------------------------------------------------- */

void numemu_sv_vectors_close(void* of) {
  stream* s = (stream*)of;
  if (s == NULL) return;
  for (int f = 0; f < MOST_FIELDS; ++f) free(s->chunk[f]);
  numemu_vectors_close(s->vectors);
  free(s);
}

int numemu_sv_vectors_open(const void* of, const char* style, int level, uint64_t seed, int64_t n, void** out) {
  const handle* h = (const handle*)of;
  *out = NULL;
  if (h == NULL) return refuse(kNotOpen);
  stream* s = (stream*)calloc(1, sizeof *s);
  if (s == NULL) return refuse("memory for vectors: expected more");
  int status = told(numemu_vectors_open(h->operation, style, level, seed, n, &s->vectors));
  for (int f = 0; status == NUMEMU_OK && f < h->fields; ++f) {
    s->chunk[f] = (uint64_t*)malloc(CHUNK * codes_of(h, f) * sizeof(uint64_t));
    if (s->chunk[f] == NULL) status = refuse("memory for vectors: expected more");
  }
  if (status != NUMEMU_OK) {
    numemu_sv_vectors_close(s);
    return status;
  }
  *out = s;
  return NUMEMU_OK;
}

int64_t numemu_sv_vectors_size(const void* of) { return of == NULL ? 0 : numemu_vectors_size(((const stream*)of)->vectors); }

/* Makes the next vector the transaction of the handle; *there is 0 at the end. */
int numemu_sv_vectors_next(void* of, void* transaction, int* there) {
  stream* s = (stream*)of;
  handle* h = (handle*)transaction;
  *there = 0;
  if (s == NULL || h == NULL) return refuse(kNotOpen);
  if (s->at == s->size) {
    s->at = 0;
    const int status = told(numemu_vectors_next(s->vectors, CHUNK, s->chunk, &s->size));
    if (status != NUMEMU_OK) {
      s->size = 0;
      return status;
    }
    if (s->size == 0) return NUMEMU_OK;
  }
  for (int f = 0; f < h->fields; ++f) {
    const uint64_t* codes = s->chunk[f] + (size_t)s->at * codes_of(h, f);
    memcpy(h->now[f], codes, codes_of(h, f) * sizeof *codes);
    if (h->want[f] != NULL) memcpy(h->want[f], codes, codes_of(h, f) * sizeof *codes);
  }
  h->lacks_flags = 0;
  ++s->at;
  *there = 1;
  return NUMEMU_OK;
}

/* --- formats ---------------------------------------------------------------------------------------------------------------------- */

typedef struct {
  numemu_format* format;
  numemu_rounding* rounding;
  numemu_format_facts facts;
} coder;

void numemu_sv_format_close(void* of) {
  coder* c = (coder*)of;
  if (c == NULL) return;
  numemu_rounding_close(c->rounding);
  numemu_format_close(c->format);
  free(c);
}

int numemu_sv_format_open(const char* name, const char* rounding, const char* overflow, void** out) {
  coder* c = (coder*)calloc(1, sizeof *c);
  *out = NULL;
  if (c == NULL) return refuse("memory for a format: expected more");
  c->facts.size = sizeof c->facts;
  int status = told(numemu_format_open(name, &c->format));
  if (status == NUMEMU_OK) status = told(numemu_format_describe(c->format, &c->facts));
  if (status == NUMEMU_OK) status = told(numemu_rounding_open(rounding, overflow, &c->rounding));
  if (status != NUMEMU_OK) {
    numemu_sv_format_close(c);
    return status;
  }
  *out = c;
  return NUMEMU_OK;
}

const char* numemu_sv_format_name(const void* of) { return of == NULL ? "" : ((const coder*)of)->facts.name; }
int numemu_sv_format_bits(const void* of) { return of == NULL ? 0 : ((const coder*)of)->facts.bits; }

int numemu_sv_encode(const void* of, double x, uint32_t random, uint64_t* code, unsigned char* flags) {
  const coder* c = (const coder*)of;
  *code = *flags = 0;
  return c == NULL ? refuse(kNotOpen) : told(numemu_encode_one(c->format, c->rounding, x, random, code, flags));
}

int numemu_sv_decode(const void* of, uint64_t code, double* x) {
  *x = 0;
  return of == NULL ? refuse(kNotOpen) : told(numemu_decode_one(((const coder*)of)->format, code, x));
}

#ifdef __cplusplus
}
#endif
