package io.orbitkv.client.bridge;

import io.orbitkv.channel.Status;
import io.orbitkv.client.OrbitKvException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Objects of one kind by id, from 1 up; an id is never given twice. Thread-safe. */
final class Handles<T> {
  private final String kind;
  private final ConcurrentHashMap<Long, T> objects = new ConcurrentHashMap<>();
  private final AtomicLong last = new AtomicLong();

  Handles(String kind) {
    this.kind = kind;
  }

  long add(T object) {
    long id = last.incrementAndGet();
    objects.put(id, object);
    return id;
  }

  T get(long id) {
    T object = objects.get(id);
    if (object == null) {
      throw new OrbitKvException(Status.INVALID, kind + "=" + id + " is not open");
    }
    return object;
  }

  /** Forgets an object and returns it; null when that was done before. */
  T remove(long id) {
    return objects.remove(id);
  }

  int size() {
    return objects.size();
  }
}
