#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_mailreader::fuzz::fuzz_mailreader(bytes);
});
