// SPDX-License-Identifier: Apache-2.0
//! Every call of the crate, and the statuses that one process can provoke.

use std::thread;
use std::time::Duration;

use velo::{id, last_error, Connection, Port, PortOptions, Status};

const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));
const MOMENT: Option<Duration> = Some(Duration::from_millis(1));

/// The tests run at the same time: each has a domain of its own.
fn options(test: &str) -> PortOptions {
    PortOptions::new().domain(&format!("rust-{}-{}", std::process::id(), test)).vpid(1)
}

fn itself(port: &Port) -> Connection<'_> {
    port.connect(port.id(), PATIENCE).unwrap()
}

#[test]
fn another_thread_ends_a_wait_for_room() {
    let port = Port::open(&options("room")).unwrap();
    assert_eq!(port.try_connect(id(0, 99)).err(), Some(Status::NO_PEER));
    let connection = port.try_connect(port.id()).unwrap();
    while connection.try_send(b"x", 0).is_ok() {}
    let end = connection.interrupter();
    thread::scope(|scope| {
        scope.spawn(move || end.interrupt());
        assert_eq!(connection.send(b"x", 0, PATIENCE), Err(Status::INTERRUPTED));
    });
}

#[test]
fn each_way_to_send_arrives_at_each_way_to_receive() {
    let port = Port::open(&options("ways")).unwrap();
    let connection = itself(&port);
    assert_eq!(port.id(), id(0, 1));
    assert_eq!(connection.generation(), port.generation());
    for (number, text) in ["waits", "tries", "peeks", ""].into_iter().enumerate() {
        match number % 2 {
            0 => connection.send(text.as_bytes(), number as u8, PATIENCE).unwrap(),
            _ => connection.try_send(text.as_bytes(), number as u8).unwrap(),
        }
    }
    let mut buf = [0; 16];
    let info = port.recv(&mut buf, PATIENCE).unwrap();
    assert_eq!((info.len_bytes, info.tag, info.source), (5, 0, port.id()));
    assert_eq!((info.generation, info.user), (port.generation(), 0));
    port.set_user(&info, 77).unwrap();
    assert_eq!(&buf[..5], b"waits");
    assert_eq!(port.try_recv(&mut buf).unwrap().tag, 1);
    assert_eq!(&buf[..5], b"tries");
    {
        let message = port.peek(PATIENCE).unwrap();
        assert_eq!(message.to_vec(), b"peeks");
        assert_eq!(unsafe { message.bytes() }, b"peeks"); // We sent it.
        assert_eq!((message.info().tag, message.info().user), (2, 77));
    }
    assert_eq!(port.try_peek().unwrap().to_vec(), b"");
    assert_eq!(port.try_peek().err().unwrap().status, Status::AGAIN);
}

#[test]
fn a_burst_is_one_call_on_each_side() {
    let port = Port::open(&options("burst")).unwrap();
    let connection = itself(&port);
    let long = vec![0; connection.max_bytes() + 1];
    let burst: [(&[u8], u8); 3] = [(b"first", 1), (b"", 2), (b"third", 3)];
    assert_eq!(connection.send_many(&burst, PATIENCE), Ok(3));
    assert_eq!(connection.send_many(&[], PATIENCE), Ok(0));
    assert_eq!(connection.send_many(&[(b"good", 4), (&long, 5), (b"", 6)], PATIENCE), Ok(1));
    assert_eq!(connection.send_many(&[(&long, 5), (b"", 6)], PATIENCE), Err(Status::TOO_BIG));
    let (mut buf, mut got) = ([0; 64], Vec::new());
    let mut keep = |bytes: &[u8], info: velo::Info| got.push((bytes.to_vec(), info.tag));
    assert_eq!(port.recv_many(2, &mut buf, PATIENCE, &mut keep), Ok(2));
    assert_eq!(port.recv_many(100, &mut buf, PATIENCE, &mut keep), Ok(2));
    let expected = [("first", 1), ("", 2), ("third", 3), ("good", 4)];
    assert_eq!(got, expected.map(|(text, tag)| (text.as_bytes().to_vec(), tag)));
    let nothing = |_: &[u8], _| unreachable!();
    assert_eq!(port.recv_many(1, &mut buf, MOMENT, nothing).unwrap_err().status, Status::TIMEOUT);
    assert_eq!(port.recv_many(0, &mut buf, MOMENT, nothing).unwrap_err().status, Status::ARG);
    connection.send(b"too long", 7, PATIENCE).unwrap();
    let too_big = port.recv_many(1, &mut [0; 4], PATIENCE, nothing).unwrap_err();
    assert_eq!((too_big.status, too_big.about.len_bytes), (Status::TOO_BIG, 8));
}

#[test]
fn a_burst_into_a_full_ring_tells_how_far_it_came() {
    let port = Port::open(&options("full-burst")).unwrap();
    let connection = itself(&port);
    let burst: Vec<(&[u8], u8)> = vec![(b"x", 7); 100_000];
    let sent = connection.send_many(&burst, MOMENT).unwrap();
    assert!(sent > 0 && sent < burst.len());
    assert_eq!(connection.send_many(&burst, MOMENT), Err(Status::TIMEOUT));
    let (mut buf, mut received) = ([0; 64], 0);
    while received < sent {
        let each = |bytes: &[u8], info: velo::Info| assert_eq!((bytes, info.tag), (&b"x"[..], 7));
        received += port.recv_many(100, &mut buf, PATIENCE, each).unwrap();
    }
    assert_eq!(received, sent);
    let nothing = |_: &[u8], _| unreachable!();
    assert_eq!(port.recv_many(1, &mut buf, MOMENT, nothing).unwrap_err().status, Status::TIMEOUT);
}

#[test]
fn a_held_message_keeps_the_next_ones_back_until_it_is_dropped() {
    let port = Port::open(&options("held")).unwrap();
    let connection = itself(&port);
    connection.try_send(b"first", 0).unwrap();
    connection.try_send(b"second", 0).unwrap();
    let first = port.try_peek().unwrap();
    assert_eq!(port.try_peek().err().unwrap().status, Status::STATE);
    assert_eq!(port.recv(&mut [0; 8], MOMENT).unwrap_err().status, Status::STATE);
    drop(first);
    assert_eq!(port.try_peek().unwrap().to_vec(), b"second");
}

#[test]
fn a_deferred_message_comes_when_the_port_resumes() {
    let port = Port::open(&options("deferred")).unwrap();
    let connection = itself(&port);
    connection.try_send(b"later", 0).unwrap();
    port.try_peek().unwrap().defer().unwrap();
    assert_eq!(port.try_peek().err().unwrap().status, Status::AGAIN);
    port.resume().unwrap();
    assert_eq!(port.try_peek().unwrap().to_vec(), b"later");
}

#[test]
fn a_wait_ends_with_its_time() {
    let port = Port::open(&options("times").depth_slots(8)).unwrap();
    let connection = itself(&port);
    assert_eq!(port.recv(&mut [], MOMENT).unwrap_err().status, Status::TIMEOUT);
    assert_eq!(port.peek(MOMENT).err().unwrap().status, Status::TIMEOUT);
    while connection.try_send(&[0; 56], 0).is_ok() {}
    assert_eq!(connection.try_send(&[0; 56], 0), Err(Status::AGAIN));
    assert_eq!(connection.send(&[0; 56], 0, MOMENT), Err(Status::TIMEOUT));
    // Longer than C can count.
    assert!(port.peek(Some(Duration::MAX)).is_ok());
}

#[test]
fn a_message_that_does_not_fit_tells_its_length() {
    let port = Port::open(&options("fit")).unwrap();
    let connection = itself(&port);
    connection.try_send(b"long", 5).unwrap();
    let refused = port.try_recv(&mut [0; 3]).unwrap_err();
    assert_eq!(refused.status, Status::TOO_BIG);
    assert_eq!((refused.about.len_bytes, refused.about.tag), (4, 5));
    let too_long = vec![0; connection.max_bytes() + 1];
    assert_eq!(connection.try_send(&too_long, 0), Err(Status::TOO_BIG));
}

#[test]
fn a_failure_says_its_reason() {
    let options = options("reasons").conns_max(1);
    let port = Port::open(&options).unwrap();
    assert_eq!(Port::open(&options).err(), Some(Status::IN_USE));
    assert!(last_error().contains("0.1"), "{}", last_error());
    let _only = itself(&port);
    assert_eq!(port.connect(port.id(), MOMENT).err(), Some(Status::FULL));
    assert_eq!(port.connect(id(0, 9), MOMENT).err(), Some(Status::NO_PEER));
    assert_eq!(Port::open(&PortOptions::new().domain("a\0b")).err(), Some(Status::ARG));
    assert_eq!(Port::open(&options.clone().vpid(2).depth_slots(3)).err(), Some(Status::ARG));
    assert!(Status::FULL.to_string().starts_with("VELO_ERR_FULL"));
}

#[test]
fn a_departure_names_the_sender_that_has_gone() {
    let options = options("departures").departures();
    let port = Port::open(&options).unwrap();
    let sender = Port::open(&options.clone().vpid(2)).unwrap();
    let generation = sender.generation();
    let connection = sender.connect(port.id(), PATIENCE).unwrap();
    connection.try_send(b"last", 0).unwrap();
    drop(connection); // The sender's port stays open.
    assert_eq!(port.peek(PATIENCE).unwrap().to_vec(), b"last");
    let gone = port.peek(PATIENCE).err().unwrap();
    assert_eq!(gone.status, Status::PEER_CLOSED);
    assert_eq!((gone.about.source, gone.about.generation), (id(0, 2), generation));
}

#[test]
fn a_sender_hears_that_its_peer_closed() {
    let options = options("closed");
    let (port, peer) = (Port::open(&options), Port::open(&options.clone().vpid(2)).unwrap());
    let port = port.unwrap();
    let connection = port.connect(peer.id(), PATIENCE).unwrap();
    connection.status().unwrap();
    drop(peer);
    assert_eq!(connection.status(), Err(Status::PEER_CLOSED));
    assert_eq!(connection.try_send(b"", 0), Err(Status::PEER_CLOSED));
}

#[test]
fn connections_go_along_with_threads() {
    let port = Port::open(&options("threads")).unwrap();
    std::thread::scope(|scope| {
        for tag in 0..4 {
            let connection = itself(&port);
            scope.spawn(move || {
                for number in 0..1000_u32 {
                    connection.send(&number.to_le_bytes(), tag, PATIENCE).unwrap();
                }
            });
        }
        let mut next = [0_u32; 4];
        for _ in 0..4000 {
            let message = port.peek(PATIENCE).unwrap();
            let expected = &mut next[message.info().tag as usize];
            assert_eq!(message.to_vec(), expected.to_le_bytes());
            *expected += 1;
        }
    });
}

#[test]
fn another_thread_interrupts_a_wait() {
    let port = Port::open(&options("interrupt")).unwrap();
    let interrupter = port.interrupter();
    std::thread::scope(|scope| {
        scope.spawn(move || interrupter.interrupt());
        assert_eq!(port.peek(PATIENCE).err().unwrap().status, Status::INTERRUPTED);
    });
}

#[test]
fn a_port_has_a_descriptor_for_event_loops() {
    let port = Port::open(&options("descriptor")).unwrap();
    assert_eq!(port.arm(), Err(Status::STATE));
    assert_eq!(port.fd(), port.fd());
    assert!(port.fd().unwrap() >= 0);
    port.arm().unwrap();
    let connection = itself(&port);
    connection.try_send(b"", 0).unwrap();
    assert_eq!(port.arm(), Err(Status::AGAIN));
}
