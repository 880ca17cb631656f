package io.orbitkv.architecture;

import java.io.File;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.concurrent.Executors;

/** Classes that each do one thing that a rule forbids, and one that does none. */
final class Impure {
  private Impure() {}

  static final class StartsThread {
    private StartsThread() {}

    static Object value() {
      return Thread.currentThread();
    }
  }

  static final class MakesExecutor {
    private MakesExecutor() {}

    static Object value() {
      return Executors.newSingleThreadExecutor();
    }
  }

  static final class ReadsNanoTime {
    private ReadsNanoTime() {}

    static long value() {
      return System.nanoTime();
    }
  }

  static final class ReadsInstant {
    private ReadsInstant() {}

    static Object value() {
      return Instant.now();
    }
  }

  static final class HoldsClock {
    private HoldsClock() {}

    static long value(Clock clock) {
      return clock.millis();
    }
  }

  static final class CallsMathRandom {
    private CallsMathRandom() {}

    static double value() {
      return Math.random();
    }
  }

  static final class CallsRandomUuid {
    private CallsRandomUuid() {}

    static Object value() {
      return UUID.randomUUID();
    }
  }

  static final class UsesSecureRandom {
    private UsesSecureRandom() {}

    static Object value() {
      return new SecureRandom();
    }
  }

  static final class UsesSplittableRandom {
    private UsesSplittableRandom() {}

    static Object value() {
      return new SplittableRandom(1);
    }
  }

  static final class UsesFile {
    private UsesFile() {}

    static Object value() {
      return new File("x");
    }
  }

  static final class UsesProcess {
    private UsesProcess() {}

    static Object value() {
      return ProcessHandle.current();
    }
  }

  static final class ReadsEnvironment {
    private ReadsEnvironment() {}

    static Object value() {
      return System.getenv("X");
    }
  }

  static final class ReadsProperty {
    private ReadsProperty() {}

    static Object value() {
      return System.getProperty("x");
    }
  }

  static final class Harmless {
    private Harmless() {}

    static Object value() {
      return ByteBuffer.allocate((int) Instant.ofEpochSecond(1).getEpochSecond());
    }
  }
}
