#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_whois::fuzz::fuzz_whois(bytes);
});
