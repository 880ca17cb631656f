package io.orbitkv.storage;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** Bounded queue of requests: one thread adds, several take. Allocates nothing. */
final class RequestQueue {
  private final AtomicReferenceArray<IoRequest> slots;
  private final int mask;
  private final AtomicLong head = new AtomicLong();
  private final AtomicLong tail = new AtomicLong();

  /** Holds so many requests, a power of two. */
  RequestQueue(int capacity) {
    slots = new AtomicReferenceArray<>(capacity);
    mask = capacity - 1;
  }

  /** Adds a request; false when there is no room. One thread only. */
  boolean offer(IoRequest request) {
    long at = tail.getPlain();
    if (at - head.getAcquire() > mask) {
      return false;
    }
    slots.setPlain((int) at & mask, request);
    tail.set(at + 1); // SYNC: request; volatile, so that the adder sees who went to sleep before
    return true;
  }

  /** Takes the oldest request; null when there is none. */
  IoRequest poll() {
    while (true) {
      long at = head.getAcquire();
      if (at == tail.getAcquire()) { // SYNC: request
        return null;
      }
      IoRequest request = slots.getPlain((int) at & mask); // kept only if the place is still ours
      if (head.compareAndSet(at, at + 1)) {
        return request;
      }
    }
  }

  boolean isEmpty() {
    return head.get() == tail.get();
  }
}
