# Sourced by the scripts: finds a JDK 25 and Maven, and says what to install where one is missing.

# Major version of the JDK in a folder, from its release file; nothing when there is none.
jdk_major() {
  local line
  [[ -x $1/bin/java && -r $1/release ]] || return 1
  while IFS= read -r line; do
    if [[ $line =~ ^JAVA_VERSION=\"([0-9]+) ]]; then
      echo "${BASH_REMATCH[1]}"
      return 0
    fi
  done <"$1/release"
  return 1
}

is_jdk25() {
  local major
  major=$(jdk_major "$1") && ((major >= 25)) && [[ -x $1/bin/javac ]]
}

# Sets and exports JAVA_HOME; ends the script with 2 when no JDK 25 is there.
find_jdk() {
  local home java
  if [[ -n ${JAVA_HOME:-} ]] && is_jdk25 "$JAVA_HOME"; then
    export JAVA_HOME
    return 0
  fi
  for home in /usr/lib/jvm/* "$HOME"/.sdkman/candidates/java/* /opt/*; do
    if is_jdk25 "$home"; then
      export JAVA_HOME=$home
      return 0
    fi
  done
  if java=$(command -v java); then
    home=$(dirname "$(dirname "$(readlink -f "$java")")")
    if is_jdk25 "$home"; then
      export JAVA_HOME=$home
      return 0
    fi
  fi
  echo "orbitkv: no JDK 25 found; install one (for example Temurin 25) or set JAVA_HOME to it" >&2
  exit 2
}

# Checks that mvn is 3.8.7 or newer and sets MAVEN_OPTS; ends the script with 2 when it is not.
find_maven() {
  local wanted=3.8.7 found package
  if ! command -v mvn >/dev/null; then
    echo "orbitkv: no mvn found; install Maven $wanted or newer" >&2
    exit 2
  fi
  found=$(mvn -v 2>/dev/null | sed -nE 's/.*Apache Maven ([0-9.]+).*/\1/p')
  if [[ $(printf '%s\n' "$wanted" "$found" | sort -V | head -1) != "$wanted" ]]; then
    echo "orbitkv: mvn is version ${found:-unknown}; install Maven $wanted or newer" >&2
    exit 2
  fi
  # Error Prone works inside javac, whose packages are closed by default.
  MAVEN_OPTS="${MAVEN_OPTS:-} --sun-misc-unsafe-memory-access=allow"
  for package in api code file main model parser processing tree util; do
    MAVEN_OPTS+=" --add-exports=jdk.compiler/com.sun.tools.javac.$package=ALL-UNNAMED"
  done
  for package in code comp; do
    MAVEN_OPTS+=" --add-opens=jdk.compiler/com.sun.tools.javac.$package=ALL-UNNAMED"
  done
  export MAVEN_OPTS
}
