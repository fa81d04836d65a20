/* What a plug-in of processes (libnumemu_mpi.so) gives: a C interface, so that it may be built
 * apart. */
#ifndef NUMEMU_API_RANKS_PLUGIN_H
#define NUMEMU_API_RANKS_PLUGIN_H

#ifdef __cplusplus
extern "C" {
#endif

struct NumemuRanks {
  int count, rank;
  /* Gives every rank the bytes of `owner`; all call it in the same order. */
  void (*broadcast)(int owner, void* data, unsigned long long bytes);
  /* Ends the job: with status 0 this rank alone, once all call it, else all of them at once. */
  void (*leave)(int status);
};

/* Joins the job that this process was started in. Returns 0, or another number where there is none.
 */
int numemu_open_ranks(struct NumemuRanks* ranks);

#ifdef __cplusplus
}
#endif
#endif
