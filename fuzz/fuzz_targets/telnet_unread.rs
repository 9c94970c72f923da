#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_telnet::fuzz::fuzz_unread(bytes);
});
