package io.orbitkv.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ByteSizeTest {
  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "4096, 4096",
    "10b, 10",
    "64kb, 65536",
    "64k, 65536",
    "1 MB, 1048576",
    "1.5gb, 1610612736",
    "2tb, 2199023255552",
    "9223372036854775807, 9223372036854775807"
  })
  void shouldParse(String text, long bytes) {
    assertThat(ByteSize.parse(text)).isEqualTo(new ByteSize(bytes));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", "gb", "-1", "1.5", "1pb", "1kib", "0x10", "9223372036854775808", "9999999tb"})
  void shouldNameValueAndRule(String text) {
    assertThatThrownBy(() -> ByteSize.parse(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("\"" + text + "\" is no size; write bytes, or a number with kb, mb, gb or tb");
  }

  @ParameterizedTest
  @CsvSource({"0, 0 B", "1023, 1023 B", "65536, 64.0 KB", "1610612736, 1.5 GB"})
  void shouldFormat(long bytes, String text) {
    assertThat(ByteSize.format(bytes)).isEqualTo(text);
  }
}
