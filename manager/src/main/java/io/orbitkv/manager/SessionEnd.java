package io.orbitkv.manager;

/** Why a session ended. */
enum SessionEnd {
  /** The engine said so. */
  CLOSED,
  /** Its socket ended without a word. */
  SOCKET_LOST,
  /** Its process has exited. */
  PROCESS_EXITED,
  /** It broke the protocol. */
  VIOLATION,
  /** A fault of the Manager. */
  INTERNAL,
  /** The Manager stops. */
  STOPPING
}
