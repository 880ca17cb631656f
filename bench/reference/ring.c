// Round trips over two single-producer single-consumer rings of 64-byte slots between two processes; the layout is
// that of io.orbitkv.channel.CommandRing: tail line, head line, slots whose last word is the position plus one.
//
// usage: ring CLIENT_CPU SERVER_CPU ROUND_TRIPS IN_FLIGHT
// prints: p50_ns NUMBER, then ops_per_s NUMBER; p50_ns is of single round trips and 0 with more than one in flight
#define _GNU_SOURCE
#include <immintrin.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CAPACITY = 1024, LINE = 128, SLOT = 64 };

typedef struct {
  uint64_t tail;
  char pad0[LINE - 8];
  _Atomic uint64_t head;
  char pad1[LINE - 8];
  struct {
    char body[SLOT - 8];
    _Atomic uint64_t sequence;
  } slots[CAPACITY];
} Ring;

typedef struct {
  Ring *ring;
  uint64_t position;
  uint64_t head_seen;
} End;

static int try_write(End *e, const char *body) {
  if (e->position - e->head_seen >= CAPACITY) {
    e->head_seen = __atomic_load_n((uint64_t *)&e->ring->head, __ATOMIC_ACQUIRE);
    if (e->position - e->head_seen >= CAPACITY) return 0;
  }
  uint64_t slot = e->position & (CAPACITY - 1);
  memcpy(e->ring->slots[slot].body, body, SLOT - 8);
  e->position++;
  __atomic_store_n((uint64_t *)&e->ring->slots[slot].sequence, e->position, __ATOMIC_RELEASE);
  e->ring->tail = e->position;
  return 1;
}

static int try_read(End *e, char *body) {
  uint64_t slot = e->position & (CAPACITY - 1);
  if (__atomic_load_n((uint64_t *)&e->ring->slots[slot].sequence, __ATOMIC_ACQUIRE) != e->position + 1) return 0;
  memcpy(body, e->ring->slots[slot].body, SLOT - 8);
  e->position++;
  __atomic_store_n((uint64_t *)&e->ring->head, e->position, __ATOMIC_RELEASE);
  return 1;
}

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    perror("sched_setaffinity");
    exit(1);
  }
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void serve(Ring *rings) {
  End in = {&rings[0], 0, 0}, out = {&rings[1], 0, 0};
  char body[SLOT - 8];
  for (;;) {
    while (!try_read(&in, body)) _mm_pause();
    while (!try_write(&out, body)) _mm_pause();
  }
}

static int64_t single(Ring *rings, End *out, End *in, int n, int64_t *times) {
  char body[SLOT - 8] = {0};
  int64_t start = now();
  for (int i = 0; i < n; i++) {
    int64_t from = now();
    while (!try_write(out, body)) _mm_pause();
    while (!try_read(in, body)) _mm_pause();
    if (times) times[i] = now() - from;
  }
  return now() - start;
}

static int64_t many(Ring *rings, End *out, End *in, int n, int in_flight) {
  char body[SLOT - 8] = {0};
  int sent = 0, got = 0;
  int64_t start = now();
  while (got < n) {
    int moved = 0;
    while (sent < n && sent - got < in_flight && try_write(out, body)) sent++, moved = 1;
    while (try_read(in, body)) got++, moved = 1;
    if (!moved) _mm_pause();
  }
  return now() - start;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  int client = atoi(argv[1]), server = atoi(argv[2]), n = atoi(argv[3]), in_flight = atoi(argv[4]);
  int fd = memfd_create("orbitkv-ring-reference", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, 2 * sizeof(Ring)) != 0) return 1;
  Ring *rings = mmap(NULL, 2 * sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  int64_t *times = calloc(n, sizeof *times);
  if (rings == MAP_FAILED || times == NULL) return 1;
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(server);
    serve(rings);
  }
  pin(client);
  End out = {&rings[0], 0, 0}, in = {&rings[1], 0, 0};
  single(rings, &out, &in, n / 10 + 1, NULL);
  int64_t ns;
  if (in_flight == 1) {
    ns = single(rings, &out, &in, n, times);
    qsort(times, n, sizeof *times, ascending);
  } else {
    ns = many(rings, &out, &in, n, in_flight);
  }
  printf("p50_ns %lld\nops_per_s %.0f\n", (long long)times[n / 2], n * 1e9 / ns);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  return 0;
}
