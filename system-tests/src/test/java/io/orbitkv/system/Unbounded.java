package io.orbitkv.system;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import java.util.zip.GZIPInputStream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** References and prefix hits of a trace on a cache without bounds, counted in the plainest way. */
record Unbounded(long references, long hits) {
  static Unbounded of(String trace, int limit) throws IOException {
    JsonMapper json = new JsonMapper();
    Set<Long> seen = new HashSet<>();
    long references = 0;
    long hits = 0;
    try (InputStream in = Unbounded.class.getResourceAsStream("/traces/" + trace + ".jsonl.gz");
        BufferedReader lines =
            new BufferedReader(
                new InputStreamReader(new GZIPInputStream(in), StandardCharsets.UTF_8))) {
      for (int i = 0; i < limit; i++) {
        String line = lines.readLine();
        if (line == null) {
          break;
        }
        boolean prefix = true;
        for (JsonNode id : json.readTree(line).get("hash_ids")) {
          references++;
          prefix &= seen.contains(id.asLong());
          hits += prefix ? 1 : 0;
        }
        json.readTree(line).get("hash_ids").forEach(id -> seen.add(id.asLong()));
      }
    }
    return new Unbounded(references, hits);
  }
}
