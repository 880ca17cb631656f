# Sourced by the scripts: keeps generated sources from outliving what they were generated from.

# Deletes the protobuf classes of another state of the .proto files, as after a switch to another commit:
# the generator writes its files anew and leaves others, which then do not compile.
drop_stale_sources() {
  local channel=$1/channel sum stamp=$1/channel/target/protobuf.sum
  [[ -d $channel/target ]] || return 0
  sum=$(cat "$channel"/src/main/protobuf/*.proto | sha256sum)
  if [[ ! -f $stamp || $(<"$stamp") != "$sum" ]]; then
    rm -rf "$channel/target/generated-sources" "$channel/target/protobuf-maven-plugin" "$channel/target/classes"
    echo "$sum" >"$stamp"
  fi
}
