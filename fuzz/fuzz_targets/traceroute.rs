#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_traceroute::fuzz::fuzz_traceroute(bytes);
});
