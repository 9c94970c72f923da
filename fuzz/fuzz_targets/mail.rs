#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_mail::fuzz::fuzz_mail(bytes);
});
