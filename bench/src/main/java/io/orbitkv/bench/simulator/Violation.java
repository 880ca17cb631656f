package io.orbitkv.bench.simulator;

import java.io.Serial;
import java.util.function.Supplier;

/** A rule does not hold. */
final class Violation extends RuntimeException {
  @Serial private static final long serialVersionUID = 1;

  private final Rule rule;

  Violation(Rule rule, String detail) {
    super(detail);
    this.rule = rule;
  }

  Violation(Rule rule, Throwable cause) {
    super(cause.toString(), cause);
    this.rule = rule;
  }

  Rule rule() {
    return rule;
  }

  static void require(boolean condition, Rule rule, Supplier<String> detail) {
    if (!condition) {
      throw new Violation(rule, detail.get());
    }
  }
}
