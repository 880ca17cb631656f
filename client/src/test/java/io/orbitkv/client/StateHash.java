package io.orbitkv.client;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Hash of what decides how objects go on: their plain fields, and which references are there. */
final class StateHash {
  /** Times, statistics and places of no consequence. */
  private static final Set<String> IGNORED =
      Set.of("submittedNs", "copyBeganNs", "copyNs", "reapedNs", "driver", "planOffset", "slot");

  private static final Map<Class<?>, List<Field>> FIELDS = new HashMap<>();

  private long hash = 17;

  StateHash add(long value) {
    long z = (hash ^ value) * 0x9e37_79b9_7f4a_7c15L;
    hash = z ^ (z >>> 29);
    return this;
  }

  /** Adds the fields of an object, or that there is none. */
  StateHash addFields(Object object) {
    if (object == null) {
      return add(-1);
    }
    for (Field field : fields(object.getClass())) {
      add(value(field, object));
    }
    return this;
  }

  private static long value(Field field, Object object) {
    try {
      Class<?> type = field.getType();
      if (type == boolean.class) {
        return field.getBoolean(object) ? 1 : 0;
      }
      if (type.isPrimitive()) {
        return field.getLong(object);
      }
      Object value = field.get(object);
      return value instanceof Enum<?> named ? named.name().hashCode() : value == null ? 0 : 1;
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
  }

  private static List<Field> fields(Class<?> type) {
    return FIELDS.computeIfAbsent(
        type,
        key -> {
          List<Field> fields = new ArrayList<>();
          for (Class<?> at = key; at != Object.class; at = at.getSuperclass()) {
            for (Field field : at.getDeclaredFields()) {
              if (!Modifier.isStatic(field.getModifiers()) && !IGNORED.contains(field.getName())) {
                field.setAccessible(true);
                fields.add(field);
              }
            }
          }
          return fields;
        });
  }

  /** A private field of an object. */
  static Object field(Object object, String name) {
    try {
      for (Class<?> at = object.getClass(); at != Object.class; at = at.getSuperclass()) {
        for (Field field : at.getDeclaredFields()) {
          if (field.getName().equals(name)) {
            field.setAccessible(true);
            return field.get(object);
          }
        }
      }
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
    throw new AssertionError("no field " + name + " in " + object.getClass());
  }

  long value() {
    return hash;
  }
}
