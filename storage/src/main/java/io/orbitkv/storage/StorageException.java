package io.orbitkv.storage;

/** A file of the SSD tier can not be used. The message names the file, what is so, and the rule. */
public class StorageException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** With its message. */
  public StorageException(String message) {
    super(message);
  }

  /** With its message and cause. */
  public StorageException(String message, Throwable cause) {
    super(message, cause);
  }
}
