package io.orbitkv.device;

/** Where engine pages live. Only {@link #HOST} is built. */
public enum DeviceKind {
  /** Process memory, copied by the processor. */
  HOST(true),
  /** Memory of a CUDA device, copied by the device itself. */
  CUDA(false);

  private final boolean exitProvesTermination;

  DeviceKind(boolean exitProvesTermination) {
    this.exitProvesTermination = exitProvesTermination;
  }

  /**
   * Whether the exit of the engine's process proves that no copy to or from its pages still runs. A
   * device may go on after the process that asked it to.
   */
  public boolean exitProvesTermination() {
    return exitProvesTermination;
  }
}
