package io.orbitkv.core;

/** Why an operation is retained: which evidence of its end is missing. */
public enum RetainedReason {
  /** Its copy may still run: the session is over, the engine's process lives. */
  PROCESS_LIVES,
  /** Its copy may still run, and the end of the engine's process can not be observed. */
  NOT_OBSERVED,
  /** The engine's process has exited, but copies of this device kind may outlive it. */
  DEVICE,
  /** A fault of the Manager itself: what the operation owns is in doubt and stays for good. */
  FAULT
}
