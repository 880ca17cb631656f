package io.orbitkv.client;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
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
  private static final Map<Class<?>, Map<String, Field>> BY_NAME = new HashMap<>();
  private static final Map<Class<?>, Map<String, Method>> METHODS = new HashMap<>();

  private long hash = 17;

  StateHash add(long value) {
    long z = (hash ^ value) * 0x9e37_79b9_7f4a_7c15L;
    hash = z ^ (z >>> 29);
    return this;
  }

  StateHash add(boolean value) {
    return add(value ? 1 : 0);
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
      return named(object, name).get(object);
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
  }

  /** Sets a private field of an object. */
  static void setField(Object object, String name, Object value) {
    try {
      named(object, name).set(object, value);
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
  }

  private static Field named(Object object, String name) {
    return BY_NAME
        .computeIfAbsent(object.getClass(), type -> new HashMap<>())
        .computeIfAbsent(
            name,
            key -> {
              for (Class<?> at = object.getClass(); at != Object.class; at = at.getSuperclass()) {
                for (Field field : at.getDeclaredFields()) {
                  if (field.getName().equals(key)) {
                    field.setAccessible(true);
                    return field;
                  }
                }
              }
              throw new AssertionError("no field " + key + " in " + object.getClass());
            });
  }

  /** Calls a private method, the only one of its name with so many arguments. */
  static Object call(Object object, String name, Object... arguments) {
    Method method =
        METHODS
            .computeIfAbsent(object.getClass(), type -> new HashMap<>())
            .computeIfAbsent(name, key -> method(object.getClass(), key, arguments.length));
    try {
      return method.invoke(object, arguments);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(name, e);
    }
  }

  private static Method method(Class<?> type, String name, int arguments) {
    for (Class<?> at = type; at != Object.class; at = at.getSuperclass()) {
      for (Method method : at.getDeclaredMethods()) {
        if (method.getName().equals(name) && method.getParameterCount() == arguments) {
          method.setAccessible(true);
          return method;
        }
      }
    }
    throw new AssertionError("no method " + name + " in " + type);
  }

  long value() {
    return hash;
  }
}
