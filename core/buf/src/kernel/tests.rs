use super::*;
use inhost_base::Random;

/// Ones-complement addition as a chain of sixteen full adders, the last carry going around to the first.
fn add_bit_by_bit(a: u16, b: u16) -> u16 {
    let (mut sum, mut carry) = (0, 0);
    for round in 0..2 {
        let (a, b) = if round == 0 { (a, b) } else { (sum, 0) };
        sum = 0;
        for bit in 0..16 {
            let (x, y) = (a >> bit & 1, b >> bit & 1);
            sum |= (x ^ y ^ carry) << bit;
            carry = x & y | x & carry | y & carry;
        }
    }
    sum
}

fn reference(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0, |sum, pair| {
        add_bit_by_bit(sum, u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    })
}

/// A kernel's name, its sum, and its copy with the sum.
type Kernel = (&'static str, fn(&[u8]) -> u64, fn(&mut [u8], &[u8]) -> u64);

/// Every kernel that this processor can run.
fn kernels() -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = vec![("portable", portable::sum, portable::copy_and_sum)];
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: both only run where the processor has AVX2.
        #[allow(unsafe_code)]
        kernels.push((
            "avx2",
            |bytes| unsafe { avx2::sum(bytes) },
            |into, from| unsafe { avx2::copy_and_sum(into, from) },
        ));
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: both only run where the processor has AVX-512.
        #[allow(unsafe_code)]
        kernels.push((
            "avx512",
            |bytes| unsafe { avx512::sum(bytes) },
            |into, from| unsafe { avx512::copy_and_sum(into, from) },
        ));
    }
    kernels
}

fn check(into: &mut [u8], from: &[u8], at: (usize, usize)) {
    let expected = reference(from);
    for (name, sum_of, copy_of) in kernels() {
        assert_eq!(in_network_order(sum_of(from)), expected, "{name}: {} bytes at {at:?}", from.len());
        into.fill(0xa5);
        let (copied, behind) = into.split_at_mut(from.len());
        assert_eq!(
            in_network_order(copy_of(copied, from)),
            expected,
            "{name}: {} bytes at {at:?}",
            from.len()
        );
        assert!(copied == from && behind.iter().all(|&byte| byte == 0xa5), "{name}: at {at:?}");
    }
    assert_eq!(sum(from), expected);
    into.fill(0xa5);
    assert_eq!(copy_and_sum(into, from), expected);
    assert_eq!(&into[..from.len()], from);
    into.fill(0xa5);
    copy(into, from);
    let (copied, behind) = into.split_at(from.len());
    assert!(
        copied == from && behind.iter().all(|&byte| byte == 0xa5),
        "a copy of {} bytes at {at:?}",
        from.len()
    );
}

/// Every length up to the third stride, from and to every place within a register.
#[test]
fn every_length_and_alignment_agrees_bit_by_bit() {
    let mut random = Random::from_number(1071);
    let from: Vec<u8> = (0..1000).map(|_| random.public_u64() as u8).collect();
    let mut into = vec![0; 1000];
    for length in 0..=800 {
        // Both places go through all of 0..64, not in step.
        let start = length * 7 % 64;
        for shift in [0, 1, 13, 31] {
            let to = (start + shift) % 64;
            check(&mut into[to..to + length + 33], &from[start..start + length], (start, to));
        }
    }
    for start in 0..64 {
        for to in 0..64 {
            check(&mut into[to..to + 131 + 5], &from[start..start + 131], (start, to));
        }
    }
}

#[test]
fn random_pieces_agree_bit_by_bit() {
    let mut random = Random::from_number(2);
    let mut from: Vec<u8> = (0..70_000).map(|_| random.public_u64() as u8).collect();
    // Runs of ones and zeros, where carries and signs go wrong.
    from[20_000..30_000].fill(0xff);
    from[40_000..45_000].fill(0);
    let mut into = vec![0; 70_000];
    for _ in 0..300 {
        let length = (random.public_below(70_000) as usize) >> random.public_below(12);
        let start = random.public_below(70_000 - length as u32 + 1) as usize;
        check(&mut into[..length], &from[start..start + length], (start, 0));
    }
}

/// More than lanes of 32 bits hold without an emptying in between.
#[test]
fn long_pieces_do_not_overflow() {
    for byte in [0xff, 0x00, 0x80] {
        let from = vec![byte; 5 << 20];
        let word = u64::from(u16::from_be_bytes([byte, byte]));
        for (name, sum_of, _) in kernels() {
            let words = from.len() as u64 / 2;
            assert_eq!(in_network_order(sum_of(&from)), fold_sum(word * words), "{name}: {byte:#x}");
        }
    }
}

#[test]
fn sums_join_at_any_place() {
    let mut random = Random::from_number(3);
    let bytes: Vec<u8> = (0..300).map(|_| random.public_u64() as u8).collect();
    for at in 0..=bytes.len() {
        let (front, back) = bytes.split_at(at);
        assert_eq!(join_sums(sum(front), sum(back), at % 2 == 1), reference(&bytes));
    }
}
