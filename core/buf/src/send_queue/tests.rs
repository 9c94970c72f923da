use super::*;
use crate::{Frame, Offload, sum};
use inhost_base::Random;

fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn what_is_lent_is_what_was_written() {
    let mut pool = Pool::new(1 << 20);
    let mut queue = SendQueue::default();
    let bytes = pattern(50_000);
    let layout = BlockLayout { origin: 0, segment_bytes: 1448, summed: true };
    assert_eq!(queue.write(&bytes[..100], layout, &mut pool), 100);
    assert_eq!(queue.write(&bytes[100..], layout, &mut pool), bytes.len() - 100);
    queue.discard(33, &mut pool);
    for offset in [0, 400, 16_000, 49_000, 49_966] {
        let lent = queue.slices(offset, 1460);
        let flat: Vec<u8> = lent.iter().flatten().copied().collect();
        let end = bytes.len().min(33 + offset + 1460);
        assert_eq!(flat, &bytes[33 + offset..end]);
    }
    assert!(queue.slices(60_000, 10).is_empty());
    queue.discard(usize::MAX, &mut pool);
    assert_eq!((queue.len(), pool.outstanding_bytes()), (0, 0));
    let mut tight = Pool::new(1000);
    assert_eq!(SendQueue::default().write(&bytes, layout, &mut tight), 0);
}

/// A bulk stream's segments lie in one piece each, with their sum at hand.
#[test]
fn full_segments_are_summed_already() {
    let mut pool = Pool::new(1 << 20);
    for segment_bytes in [536, 1448, 8948, 65_483] {
        let mut queue = SendQueue::default();
        let bytes = pattern(200_000);
        for piece in bytes.chunks(16_384) {
            queue.write(
                piece,
                BlockLayout { origin: 0, segment_bytes: segment_bytes as u32, summed: true },
                &mut pool,
            );
        }
        let mut sums = [None; 8];
        let mut misses = 0;
        for from in (0..bytes.len() / segment_bytes).step_by(8) {
            let length = (bytes.len() - from * segment_bytes).min(8 * segment_bytes);
            sums.fill(None);
            queue.sums(from * segment_bytes, length, segment_bytes as u32, &mut sums);
            for (n, segment) in bytes[from * segment_bytes..][..length].chunks(segment_bytes).enumerate() {
                misses += usize::from(sums[n].is_none());
                assert_eq!(sums[n].unwrap_or_else(|| sum(segment)), sum(segment));
                let pieces = queue.slices((from + n) * segment_bytes, segment.len()).iter().count();
                assert!(pieces == 1 || segment_bytes == 65_483);
            }
        }
        // Data that does not fit the first chunk is in two.
        assert!(misses == 0 || segment_bytes > 4096, "{misses} of segments of {segment_bytes}");
        queue.clear(&mut pool);
        assert_eq!(pool.outstanding_bytes(), 0);
    }
}

/// Writes, lendings, acknowledgments and queries in any order: every byte and every reported sum is right.
#[test]
fn any_order_of_calls_keeps_bytes_and_sums_right() {
    let mut random = Random::from_number(5);
    let (mut told, mut shared) = (0, 0);
    for round in 0..60 {
        let mut pool = Pool::new(4 << 20);
        // Data that a receiver has not read yet.
        let mut kept: Vec<(Packet, Vec<u8>)> = Vec::new();
        let (mut queue, mut model) = (SendQueue::default(), Vec::new());
        let segment_bytes = 1 + random.public_below(3000) as usize;
        // Where in the first segment held the queue begins.
        let mut into_segment = 0;
        for _ in 0..400 {
            let count = 1 + (random.public_below(40_000) >> random.public_below(15)) as usize;
            let layout = BlockLayout {
                origin: match random.public_chance(0.1) {
                    true => random.public_below(model.len() as u32 + 1) as usize,
                    false => (segment_bytes - into_segment) % segment_bytes,
                },
                // Now and then no sums are wanted.
                segment_bytes: if random.public_chance(0.1) { 0 } else { segment_bytes as u32 },
                summed: random.public_chance(0.9),
            };
            match random.public_below(6) {
                0 | 1 if model.len() < 400_000 => {
                    let bytes: Vec<u8> = (0..count).map(|_| random.public_u64() as u8).collect();
                    assert_eq!(queue.write(&bytes, layout, &mut pool), count);
                    model.extend(bytes);
                }
                2 if model.len() < 400_000 => {
                    let bytes: Vec<u8> = (0..count).map(|_| random.public_u64() as u8).collect();
                    model.extend(&bytes);
                    queue.lend(Bytes::from(bytes), layout);
                }
                3 => {
                    let count = count.min(model.len());
                    queue.discard(count, &mut pool);
                    model.drain(..count);
                    into_segment = (into_segment + count) % segment_bytes;
                }
                _ if !model.is_empty() => {
                    // Where segments begin is seldom at random.
                    let at = random.public_below(model.len() as u32) as usize;
                    let aligned =
                        (at / segment_bytes * segment_bytes + segment_bytes - into_segment) % model.len();
                    let at = if random.public_chance(0.2) { at } else { aligned };
                    let length = (model.len() - at).min(segment_bytes * 6);
                    let mut sums = [None; 6];
                    queue.sums(at, length, segment_bytes as u32, &mut sums);
                    for (sum_of, segment) in sums.iter().zip(model[at..at + length].chunks(segment_bytes)) {
                        told += usize::from(sum_of.is_some());
                        assert_eq!(sum_of.unwrap_or_else(|| sum(segment)), sum(segment), "round {round}");
                    }
                    let one = length.min(segment_bytes);
                    let segment = queue.segment(at, one, true);
                    let flat: Vec<u8> = segment.iter().flatten().copied().collect();
                    assert_eq!(flat, &model[at..at + flat.len()]);
                    assert!(flat.len() == one || segment.iter().count() == Slices::MOST);
                    assert!(segment.known_sum().is_none_or(|told| told == sum(&flat)));
                    assert!(queue.segment(at, one, false).known_sum().is_none());
                    let lent = queue.slices(at, length);
                    let flat: Vec<u8> = lent.iter().flatten().copied().collect();
                    assert_eq!(flat, &model[at..at + flat.len()]);
                    if random.public_chance(0.2) {
                        let (lent, shareable) = queue.shareable(at, length);
                        let mut from = at;
                        let header = [7; 3];
                        let frame = Frame { header: &header, payload: lent, offload: Offload::None };
                        let head = Packet::from_storage(Box::new([0; 8]), 0);
                        let mut keep = |packet: Packet| {
                            if packet.pieces() > 0 {
                                assert_eq!(
                                    (packet.bytes(), packet.pieces()),
                                    (&header[..], lent.iter().count())
                                );
                                return;
                            }
                            let to = from + packet.len();
                            kept.push((packet, model[from..to].to_vec()));
                            from = to;
                        };
                        if let Some(shareable) = shareable {
                            frame.share(shareable, head, &mut keep).unwrap();
                        }
                        assert!(from == at + if shareable.is_some() { lent.len() } else { 0 });
                        shared += from - at;
                    }
                }
                _ => {}
            }
            if random.public_chance(0.1) {
                kept.retain(|(packet, bytes)| {
                    assert!(packet.bytes() == bytes);
                    random.public_chance(0.5)
                });
            }
            assert_eq!(queue.len(), model.len());
        }
        queue.clear(&mut pool);
        assert_eq!((pool.outstanding_bytes(), queue.capacity_bytes()), (0, 0));
        assert!(kept.iter().all(|(packet, bytes)| packet.bytes() == bytes));
    }
    assert!(told > 1_000, "{told} sums were kept");
    assert!(shared > 1_000_000, "{shared} bytes were shared");
}

#[test]
fn lent_bytes_are_held_until_acknowledged() {
    let mut pool = Pool::new(1 << 20);
    let mut queue = SendQueue::default();
    let bytes = Bytes::from(pattern(100_000));
    queue.lend(bytes.clone(), BlockLayout { origin: 0, segment_bytes: 1448, summed: true });
    assert_eq!((queue.len(), queue.capacity_bytes(), pool.outstanding_bytes()), (100_000, 100_000, 0));
    // The very bytes, not a copy.
    assert!(queue.slices(0, 1448).iter().all(|piece| core::ptr::eq(piece.as_ptr(), bytes.as_ptr())));
    queue.discard(60_000, &mut pool);
    assert_eq!(queue.slices(0, 100).iter().next(), Some(&bytes[60_000..60_100]));
    assert!(!bytes.is_unique());
    queue.discard(40_000, &mut pool);
    assert!(bytes.is_unique() && queue.capacity_bytes() == 0);
}
