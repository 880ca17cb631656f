// Copies blocks between a memfd pool and anonymous pages, at random places of both, in one thread.
//
// usage: copy CPU POOL_BYTES PAGE_BYTES; then each line of standard input "KIND BLOCK_BYTES OPERATION_BYTES" is answered
// with the seconds that it took. KIND is out (pool to pages, memcpy), in (pages to pool, memcpy) or nt (pool to pages,
// non-temporal stores where the processor has AVX2; memcpy elsewhere).
#define _GNU_SOURCE
#include <immintrin.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t seed = 0x9e3779b97f4a7c15ULL;

static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void copy_non_temporal(char *to, const char *from, size_t bytes) {
#ifdef __AVX2__
  for (size_t i = 0; i < bytes; i += 128) {
    __m256i a = _mm256_load_si256((const __m256i *)(from + i));
    __m256i b = _mm256_load_si256((const __m256i *)(from + i + 32));
    __m256i c = _mm256_load_si256((const __m256i *)(from + i + 64));
    __m256i d = _mm256_load_si256((const __m256i *)(from + i + 96));
    _mm256_stream_si256((__m256i *)(to + i), a);
    _mm256_stream_si256((__m256i *)(to + i + 32), b);
    _mm256_stream_si256((__m256i *)(to + i + 64), c);
    _mm256_stream_si256((__m256i *)(to + i + 96), d);
  }
  _mm_sfence();
#else
  memcpy(to, from, bytes);
#endif
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  size_t pool_bytes = strtoull(argv[2], NULL, 10), page_bytes = strtoull(argv[3], NULL, 10);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(atoi(argv[1]), &set);
  sched_setaffinity(0, sizeof set, &set);
  int fd = memfd_create("orbitkv-copy-reference", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, pool_bytes) != 0) return 1;
  char *pool = mmap(NULL, pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  char *pages = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pool == MAP_FAILED || pages == MAP_FAILED) return 1;
  madvise(pages, page_bytes, MADV_HUGEPAGE);
  memset(pool, 1, pool_bytes);
  memset(pages, 2, page_bytes);
  char kind[8];
  size_t block, operation;
  while (scanf("%7s %zu %zu", kind, &block, &operation) == 3) {
    size_t blocks = operation / block, in_pool = pool_bytes / block, in_pages = page_bytes / block;
    size_t *from = malloc(blocks * sizeof *from), first = next_random() % in_pages;
    for (size_t i = 0; i < blocks; i++) from[i] = next_random() % in_pool;
    double start = now();
    for (size_t i = 0; i < blocks; i++) {
      char *a = pool + from[i] * block, *b = pages + (first + i) % in_pages * block;
      if (kind[0] == 'o') memcpy(b, a, block);
      else if (kind[0] == 'i') memcpy(a, b, block);
      else copy_non_temporal(b, a, block);
    }
    printf("%.9f\n", now() - start);
    fflush(stdout);
    free(from);
  }
  return 0;
}
