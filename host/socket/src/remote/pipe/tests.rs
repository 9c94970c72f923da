use super::*;
use crate::memory::REMOTE_RING_BYTES;
use crate::remote::down::{BLOCKS_MOST_BYTES, Hand};
use crate::remote::lent::LentPacket;
use inhost_buf::Pool;
use inhost_tcp::ConnectionError;

#[test]
fn bytes_go_both_ways_and_end() {
    // Half of it is for what is in hand.
    let (pipe, mut hand) = (Pipe::new(16, &Allowance::new(0)), Hand::new());
    assert_eq!(pipe.try_write(&[IoSlice::new(b"abcdefghij")], false), Some(Ok(8)));
    assert_eq!(pipe.try_write(&[IoSlice::new(b"x")], false), None);
    pipe.on_shard(|end| {
        end.down().take(&mut hand);
        let (front, how) = hand.front();
        assert_eq!((front, how.urgent, how.more), (&b"abcdefgh"[..], false, true));
        hand.sent(3);
        end.up().put(b"hello", None);
    });
    assert_eq!(pipe.try_write(&[IoSlice::new(b"!")], true), Some(Ok(1)));
    pipe.end_sending(Sending::Finished);
    assert_eq!(pipe.try_write(&[IoSlice::new(b"y")], false), Some(Err(StreamError::SendingEnded)));
    let mut into = [0; 16];
    assert_eq!(pipe.try_read(&mut into), Some(Ok(5)));
    assert_eq!(pipe.try_read(&mut into), None);
    pipe.on_shard(|end| {
        let mut sent = Vec::new();
        while !hand.is_empty() {
            let (front, how) = hand.front();
            sent.push((front.to_vec(), how));
            let count = front.len();
            hand.sent(count);
            end.down().take(&mut hand);
        }
        assert_eq!(sent.iter().flat_map(|(b, _)| b.clone()).collect::<Vec<_>>(), b"defgh!");
        let (last, others) = sent.split_last().unwrap();
        assert!(last.1.urgent && !last.1.more);
        assert!(others.iter().all(|(_, how)| how.more && !how.urgent));
        end.finish(Err(StreamError::Connection(ConnectionError::Reset)));
    });
    assert_eq!(pipe.try_read(&mut into), Some(Err(StreamError::Connection(ConnectionError::Reset))));
}

/// All that the shard's task finds to send.
fn sent(pipe: &Pipe, hand: &mut Hand) -> Vec<u8> {
    let mut sent = Vec::new();
    pipe.on_shard(|end| end.down().take(hand));
    while !hand.is_empty() {
        match hand.block() {
            // The connection takes a part of it.
            Some((block, _)) => {
                sent.extend(block.split_to(block.len().min(40_000)));
                hand.sent_of_block();
            }
            None => {
                let count = hand.front().0.len();
                sent.extend_from_slice(hand.front().0);
                hand.sent(count);
            }
        }
    }
    sent
}

#[test]
fn much_goes_in_blocks_and_in_order_with_what_is_written_beside_it() {
    let allowance = Allowance::new(64 << 20);
    let (pipe, mut hand, left) =
        (Pipe::new(REMOTE_RING_BYTES, &allowance), Hand::new(), allowance.left_bytes());
    let text: Vec<u8> = (0..300_000_u32).map(|at| at as u8 ^ (at >> 8) as u8).collect();
    let (head, rest) = text.split_at(100);
    let (body, tail) = rest.split_at(200_000);
    assert_eq!(pipe.try_write(&[IoSlice::new(head)], false), Some(Ok(100)));
    let pieces = [IoSlice::new(&body[..70_000]), IoSlice::new(&body[70_000..])];
    assert_eq!(pipe.try_write(&pieces, false), Some(Ok(200_000)));
    assert_eq!(pipe.try_write(&[IoSlice::new(&tail[..5])], false), Some(Ok(5)));
    assert_eq!(pipe.try_write(&[IoSlice::new(&tail[5..])], false), Some(Ok(tail.len() - 5)));
    assert!(pipe.may_write_directly().is_none() && pipe.is_large() && allowance.left_bytes() < left);
    pipe.on_shard(|end| end.down().take(&mut hand));
    assert!(hand.block().is_some_and(|(block, how)| block == head && how.more));
    assert_eq!(sent(&pipe, &mut hand), text);
    assert!(sent(&pipe, &mut hand).is_empty() && pipe.may_write_directly().is_some());
    // What was used is kept for a while.
    pipe.release_unused();
    assert!(pipe.is_large());
    pipe.release_unused();
    assert!(!pipe.is_large());
    assert_eq!(allowance.left_bytes(), left);
}

#[test]
fn blocks_have_a_limit_and_urgent_data_is_not_among_them() {
    let text = vec![7; 8 << 20];
    let write = |pipe: &Pipe, urgent| pipe.try_write(&[IoSlice::new(&text)], urgent);
    let pipe = Pipe::new(REMOTE_RING_BYTES, &Allowance::new(64 << 20));
    let mut hand = Hand::new();
    assert_eq!(write(&pipe, false), Some(Ok(BLOCKS_MOST_BYTES)));
    assert_eq!((write(&pipe, false), pipe.readiness().writable), (None, false));
    pipe.on_shard(|end| end.down().take(&mut hand));
    assert!(pipe.readiness().writable && hand.block().is_some_and(|(_, how)| how.more));
    assert_eq!(write(&pipe, false), Some(Ok(BLOCKS_MOST_BYTES)));
    pipe.on_shard(|end| end.down().fail(StreamError::Closed));
    assert_eq!(write(&pipe, false), Some(Err(StreamError::Closed)));
    assert!(sent(&pipe, &mut hand).len() == BLOCKS_MOST_BYTES);
    // Without memory for blocks, and with urgent data, the ring has it.
    for (allowed_bytes, urgent) in [(0, false), (64 << 20, true)] {
        let pipe = Pipe::new(REMOTE_RING_BYTES, &Allowance::new(allowed_bytes));
        assert!(write(&pipe, urgent).is_some_and(|result| result.is_ok_and(|count| count > 0)));
        pipe.on_shard(|end| end.down().take(&mut hand));
        assert!(hand.block().is_none() && !hand.is_empty());
        hand.clear();
    }
}

#[test]
fn packets_are_read_behind_what_was_copied_and_come_back() {
    let allowance = Allowance::new(1 << 20);
    let pipe = Pipe::new(64, &allowance);
    let (mut pool, left) = (Pool::new(1 << 20), allowance.left_bytes());
    let lent = |pool: &mut Pool, bytes: &[u8]| {
        let mut packet = pool.take_bare(bytes.len()).unwrap();
        packet.append(bytes);
        pool.let_go(&packet);
        let taken = allowance.take_of(packet.capacity(), 1).unwrap();
        LentPacket::new(packet, taken)
    };
    let packets = vec![lent(&mut pool, b"cdef"), lent(&mut pool, b"gh")];
    pipe.on_shard(|end| {
        end.up().put(b"ab", None);
        end.up().lend(packets);
        // What is copied would overtake the packets.
        assert_eq!(end.up().room(), 0);
    });
    assert_eq!((pipe.readable_bytes(), pool.outstanding_bytes()), (8, 0));
    let mut into = [0; 5];
    let waker = std::task::Waker::noop();
    let context = Context::from_waker(waker);
    assert_eq!(pipe.poll_peek(&context, &mut into), Poll::Ready(Ok(5)));
    assert_eq!(&into, b"abcde");
    assert_eq!((pipe.try_read(&mut into), &into), (Some(Ok(5)), b"abcde"));
    assert!(pipe.readiness().readable);
    assert_eq!((pipe.poll_peek(&context, &mut into), &into[..3]), (Poll::Ready(Ok(3)), &b"fgh"[..]));
    assert_eq!((pipe.try_read(&mut into), &into[..3]), (Some(Ok(3)), &b"fgh"[..]));
    assert_eq!(pipe.try_read(&mut into), None);
    assert!(!pipe.readiness().readable && pipe.is_large() && allowance.left_bytes() < left);
    let used = pipe.on_shard(|end| end.up().take_used());
    assert_eq!(used.len(), 2);
    drop(used);
    assert_eq!(allowance.left_bytes(), left);
    assert!(pipe.on_shard(|end| end.up().room()) > 0 && !pipe.is_large());
}

#[test]
fn the_urgent_mark_is_found_at_the_outer_end() {
    let pipe = Pipe::new(64, &Allowance::new(0));
    pipe.on_shard(|end| end.up().put(b"ab", Some(5)));
    assert_eq!(pipe.urgent_ahead(), Some(5));
    pipe.on_shard(|end| end.up().put(b"cde", Some(3)));
    assert_eq!(pipe.try_read(&mut [0; 4]), Some(Ok(4)));
    assert_eq!(pipe.urgent_ahead(), Some(1));
    assert_eq!(pipe.try_read(&mut [0; 4]), Some(Ok(1)));
    assert_eq!(pipe.urgent_ahead(), None);
}
