// First touch of a fresh memfd by two threads; prints a line when it is done.
//
// usage: touch BYTES
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
  volatile char *from;
  size_t bytes;
} Part;

static void *touch(void *argument) {
  Part *part = argument;
  for (size_t i = 0; i < part->bytes; i += 4096) part->from[i] = 0;
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  size_t bytes = strtoull(argv[1], NULL, 10);
  int fd = memfd_create("orbitkv-touch-reference", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, bytes) != 0) return 1;
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 1;
  Part halves[2] = {{memory, bytes / 2}, {memory + bytes / 2, bytes - bytes / 2}};
  pthread_t thread;
  if (pthread_create(&thread, NULL, touch, &halves[1]) != 0) return 1;
  touch(&halves[0]);
  pthread_join(thread, NULL);
  puts("done");
  fflush(stdout);
  return 0;
}
